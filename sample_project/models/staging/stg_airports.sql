select faa as airport, name as airport_name from {{ raw('airports') }}
