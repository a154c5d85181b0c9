# Owns one build of the web UI (see CMakeLists.txt). Without the packages it removes what an older build left,
# warns and succeeds: the next build tries again, because its output is missing. A type error or a failing
# bundle is an error.
# In: SOURCE, WORK, OUT, NODE, NPM.
file(MAKE_DIRECTORY ${WORK})
file(REMOVE_RECURSE ${WORK}/src)
file(COPY ${SOURCE}/src ${SOURCE}/build.mjs ${SOURCE}/package.json ${SOURCE}/package-lock.json
     ${SOURCE}/tsconfig.json ${SOURCE}/.npmrc DESTINATION ${WORK})

# The packages lie there for as long as the lock is the one they came from.
file(SHA256 ${WORK}/package-lock.json lock)
set(stamp ${WORK}/node_modules/.det-lock)
set(have "")
if(EXISTS ${stamp})
  file(READ ${stamp} have)
endif()
if(NOT have STREQUAL lock)
  execute_process(
    COMMAND ${NPM} ci --ignore-scripts --prefer-offline --no-progress --loglevel=error
            --fetch-retries=2 --fetch-retry-mintimeout=1000 --fetch-retry-maxtimeout=5000
    WORKING_DIRECTORY ${WORK} RESULT_VARIABLE failed OUTPUT_QUIET)
  if(failed)
    file(REMOVE_RECURSE ${OUT})
    message(WARNING "npm ci failed: the packages of the web UI could not be fetched. The master will serve no "
                    "web UI. Build again when the package registry can be reached, or set -DDET_WEBUI=OFF")
    return()
  endif()
  file(WRITE ${stamp} ${lock})
endif()

execute_process(COMMAND ${NODE} node_modules/typescript/bin/tsc --noEmit
                WORKING_DIRECTORY ${WORK} RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR "the web UI has type errors")
endif()
execute_process(COMMAND ${NODE} build.mjs ${OUT} WORKING_DIRECTORY ${WORK} RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR "the web UI could not be bundled")
endif()
