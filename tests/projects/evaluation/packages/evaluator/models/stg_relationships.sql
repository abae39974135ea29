with nodes as (
    select * from {{ ref('base_nodes') }} where is_enabled and resource_type <> 'test' and package_name <> 'evaluator'
)
select nodes.unique_id as resource_id, nodes.name as resource_name, nodes.resource_type, edges.direct_parent_id
from nodes
left join {{ ref('base_relationships') }} as edges on nodes.unique_id = edges.resource_id
