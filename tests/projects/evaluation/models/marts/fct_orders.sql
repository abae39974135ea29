{{ config(materialized='table') }} select o.*, a.amount as total from {{ ref('stg_orders') }} o join {{ ref('int_amounts') }} a on o.customer = a.customer
