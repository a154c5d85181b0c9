// Renders a Helm chart with the template language and the functions that Helm uses, and prints its objects as a JSON
// array. Usage: render_chart CHART [VALUES.yaml]
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig"
	"github.com/ghodss/yaml"
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "render_chart:", err)
		os.Exit(1)
	}
}

func read(path string, into interface{}) {
	text, err := os.ReadFile(path)
	check(err)
	check(yaml.Unmarshal(text, into))
}

// merge overwrites the values of a chart as Helm does: maps are joined, anything else is replaced.
func merge(into, from map[string]interface{}) {
	for key, value := range from {
		inner, isMap := value.(map[string]interface{})
		if old, wasMap := into[key].(map[string]interface{}); isMap && wasMap {
			merge(old, inner)
		} else {
			into[key] = value
		}
	}
}

func toYaml(value interface{}) (string, error) {
	text, err := yaml.Marshal(value)
	return strings.TrimSuffix(string(text), "\n"), err
}

func main() {
	chart := os.Args[1]
	var about, values, given map[string]interface{}
	read(filepath.Join(chart, "Chart.yaml"), &about)
	read(filepath.Join(chart, "values.yaml"), &values)
	if len(os.Args) > 2 {
		read(os.Args[2], &given)
		merge(values, given)
	}
	functions := sprig.TxtFuncMap()
	functions["toYaml"] = toYaml
	paths, err := filepath.Glob(filepath.Join(chart, "templates", "*.yaml"))
	check(err)
	sort.Strings(paths)
	objects := []interface{}{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		check(err)
		parsed, err := template.New(path).Funcs(functions).Parse(string(text))
		check(err)
		var out bytes.Buffer
		release := map[string]interface{}{"Name": "test", "Namespace": "det"}
		check(parsed.Execute(&out, map[string]interface{}{"Values": values, "Chart": about, "Release": release}))
		for _, part := range strings.Split(out.String(), "\n---\n") {
			var object interface{}
			check(yaml.Unmarshal([]byte(part), &object))
			if object != nil {
				objects = append(objects, object)
			}
		}
	}
	check(json.NewEncoder(os.Stdout).Encode(objects))
}
