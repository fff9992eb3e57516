import { globSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { ConfigError } from './config-error.ts';
import { readXml, type XmlElement } from './xml.ts';

const MAX_FILES = 1024;
const MAX_DEPTH = 8;

/**
 * Replaces every `<Name include="glob"/>` by the root elements of the files that match, in the order of their names. Patterns
 * are relative to the file that they stand in; included files may include others.
 * @param prepare fills macros in: called with each element before its attributes are read
 * @param warn called for patterns that match nothing
 * @throws ConfigError an included file is malformed, has another root element, or there are too many
 */
export function expandIncludes(
  root: XmlElement,
  prepare: (element: XmlElement) => XmlElement,
  warn: (line: string) => void,
): XmlElement {
  let files = 0;

  function included({ name, file, attributes: { include = '' } }: XmlElement, depth: number): XmlElement[] {
    if (depth >= MAX_DEPTH) throw new ConfigError([`${file}: includes are nested deeper than ${MAX_DEPTH}`]);
    const folder = dirname(file);
    const paths = globSync(include, { cwd: folder })
      .map((path) => resolve(folder, path))
      .sort();
    if (paths.length === 0) warn(`${file}: no file matches include="${include}" of ${name}`);
    return paths.map((path) => {
      if (++files > MAX_FILES) throw new ConfigError([`${file}: includes more than ${MAX_FILES} files`]);
      const element = prepare(readXml(path));
      if (element.name !== name) {
        throw new ConfigError([`${path}: the root element is "${element.name}", included as "${name}"`]);
      }
      return expand(element, depth + 1);
    });
  }

  function expand(element: XmlElement, depth: number): XmlElement {
    const children = element.children.flatMap((child) =>
      child.attributes['include'] === undefined ? [expand(child, depth)] : included(child, depth),
    );
    return { ...element, children };
  }

  return expand(prepare(root), 0);
}
