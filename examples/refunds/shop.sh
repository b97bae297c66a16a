# A server of tools that speaks MCP on its standard input and output. It pays nothing.
while IFS= read -r line; do
  id=${line#*'"id":'}; id=${id%%,*}
  reply() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
  case $line in
    *'"initialize"'*)
      reply '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"shop","version":"1"}}' ;;
    *'"tools/list"'*)
      reply '{"tools":[{"name":"refund","description":"Refunds a part of an order","inputSchema":{"type":"object","properties":{"order":{"type":"string"},"amount":{"type":"number"}},"required":["order","amount"]}}]}' ;;
    *'"tools/call"'*)
      amount=${line#*'"amount":'}; amount=${amount%%[!0-9.]*}
      reply '{"content":[{"type":"text","text":"refunded '"$amount"'"}],"structuredContent":{"refunded":'"$amount"'}}' ;;
  esac
done
