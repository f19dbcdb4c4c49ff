# ph_embed(INPUT OUTPUT HEADER SYMBOL): writes the C source OUTPUT, which defines the bytes of the file INPUT, and a NUL behind them, as
# the array SYMBOL that HEADER declares. Runs as the build is configured, and again when INPUT has changed.
function(ph_embed input output header symbol)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${input})
  file(READ ${input} bytes HEX)
  string(REGEX REPLACE "(................)" "\\1\n" bytes "${bytes}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," bytes "${bytes}")
  file(CONFIGURE OUTPUT ${output} CONTENT "#include \"${header}\"\n\nconst char ${symbol}[] = {\n${bytes}'\\0'};\n")
endfunction()
