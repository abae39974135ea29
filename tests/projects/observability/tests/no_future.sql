select * from {{ ref('orders') }} where day > current_date
