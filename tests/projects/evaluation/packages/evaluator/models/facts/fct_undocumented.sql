select name, file_path from {{ ref('base_nodes') }} as nodes
where resource_type = 'model' and not is_described and package_name <> 'evaluator'
  and not exists (select 1 from {{ ref('exceptions') }} as e where e.rule = 'fct_undocumented' and nodes.name like e.path)
