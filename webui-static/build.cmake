# Builds the web UI once (see CMakeLists.txt). Without the packages it removes the output of earlier builds,
# warns and succeeds; the next build retries because its output is missing. A type error or a failing bundle
# is an error.
# Variables: SOURCE, WORK, OUT, NODE, NPM.
file(MAKE_DIRECTORY ${WORK})
file(REMOVE_RECURSE ${WORK}/src)
file(COPY ${SOURCE}/src ${SOURCE}/build.mjs ${SOURCE}/package.json ${SOURCE}/package-lock.json
     ${SOURCE}/tsconfig.json ${SOURCE}/.npmrc DESTINATION ${WORK})

# Reinstalls the packages only when the lock file has changed.
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
