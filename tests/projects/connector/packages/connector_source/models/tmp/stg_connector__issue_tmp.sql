select * from {{ var('issue') }}
