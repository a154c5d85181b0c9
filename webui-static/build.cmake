# Builds the web UI once (see CMakeLists.txt). Without the packages it removes the output of earlier builds,
# warns and succeeds; the next build retries because its output is missing. A type error or a failing bundle
# is an error.
# Variables: SOURCE, WORK, OUT, NODE, and NPM if it is installed.
file(MAKE_DIRECTORY ${WORK})
file(REMOVE_RECURSE ${WORK}/src)
file(COPY ${SOURCE}/src ${SOURCE}/build.mjs ${SOURCE}/package.json ${SOURCE}/package-lock.json
     ${SOURCE}/tsconfig.json ${SOURCE}/.npmrc DESTINATION ${WORK})

# Sets `command` to a command that runs npm. Without an installed one this is the version that package.json names,
# downloaded once and checked by its hash: Debian's npm depends on 350 packages. Without a network `command` is empty.
function(find_npm command)
  if(NPM)
    set(${command} ${NPM} PARENT_SCOPE)
    return()
  endif()
  file(READ ${WORK}/package.json package)
  string(JSON manager GET ${package} packageManager)
  if(NOT manager MATCHES "^npm@([0-9.]+)[+]sha512[.]([0-9a-f]+)$")
    message(FATAL_ERROR "package.json: packageManager is not npm@VERSION+sha512.HASH: ${manager}")
  endif()
  set(version ${CMAKE_MATCH_1})
  set(expected ${CMAKE_MATCH_2})
  set(folder ${WORK}/npm-${version})
  if(NOT EXISTS ${folder}/package)
    set(registry $ENV{npm_config_registry})
    if(NOT registry)
      set(registry https://registry.npmjs.org)
    endif()
    string(REGEX REPLACE "/$" "" registry ${registry})
    set(url ${registry}/npm/-/npm-${version}.tgz)
    file(DOWNLOAD ${url} ${folder}.tgz STATUS status TIMEOUT 120 INACTIVITY_TIMEOUT 20)
    list(GET status 0 code)
    if(code)
      list(GET status 1 reason)
      message("npm error: ${url}: ${reason}")
      set(${command} "" PARENT_SCOPE)
      return()
    endif()
    file(SHA512 ${folder}.tgz hash)
    if(NOT hash STREQUAL expected)
      message(FATAL_ERROR "${url} is not the npm that package.json names (packageManager): its SHA-512 is ${hash}")
    endif()
    file(ARCHIVE_EXTRACT INPUT ${folder}.tgz DESTINATION ${folder}.new)
    file(RENAME ${folder}.new ${folder})
    file(REMOVE ${folder}.tgz)
  endif()
  set(${command} ${NODE} ${folder}/package/bin/npm-cli.js PARENT_SCOPE)
endfunction()

# Reinstalls the packages only when the lock file has changed.
file(SHA256 ${WORK}/package-lock.json lock)
set(stamp ${WORK}/node_modules/.det-lock)
set(have "")
if(EXISTS ${stamp})
  file(READ ${stamp} have)
endif()
if(NOT have STREQUAL lock)
  find_npm(npm)
  set(failed no_npm)
  if(npm)
    execute_process(
      COMMAND ${npm} ci --ignore-scripts --prefer-offline --no-progress --loglevel=error
              --fetch-retries=2 --fetch-retry-mintimeout=1000 --fetch-retry-maxtimeout=5000
      WORKING_DIRECTORY ${WORK} RESULT_VARIABLE failed OUTPUT_QUIET)
  endif()
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
