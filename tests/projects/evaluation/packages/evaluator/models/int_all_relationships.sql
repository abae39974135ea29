{{ config(materialized='table', cluster_by=['parent_id']) }}
{{ all_relationships() }}
select parent_id, child_id, parent, child, distance, path,
    {{ dbt.concat(["'from '", "parent"]) }} as said, array_join(path, '|') as path_text
from all_levels
