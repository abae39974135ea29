{{ tools.unpivot(ref('by_kind'), ['region']) }}
