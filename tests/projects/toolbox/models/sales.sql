{{ tools.union_relations([ref('sales_2023'), ref('sales_2024')]) }}
