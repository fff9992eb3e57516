import type { TObject, TSchema } from 'typebox';
import { elementName, elementNames } from './names.ts';
import { similar } from './similar.ts';
import { isListSchema, isObjectSchema, type Described } from './resolve.ts';
import type { XmlElement } from './xml.ts';

/** A fault or warning; `path` is an element path. */
export interface Finding {
  readonly file: string;
  readonly path: string;
  readonly message: string;
  /** The name of an element is probably mistyped: other problems may follow from it. */
  readonly isTypo?: boolean;
}

/**
 * Maps elements to the JSON that the management API would accept for the same thing: names to keys, containers to arrays,
 * text to numbers and booleans where the description says so. Text that is none of these stays text, which `readConfig` then
 * rejects.
 */
export class XmlToJson {
  readonly problems: Finding[] = [];
  readonly warnings: Finding[] = [];
  readonly #files = new WeakMap<object, string>();
  readonly #unknownElements = new Set<string>();
  readonly #unset = new Map<string, readonly string[]>();

  /** File with the element that an object or list was made of. */
  fileOf(json: object): string | undefined {
    return this.#files.get(json);
  }

  /** Environment variables in the element at a path that are not set or are empty. */
  unsetAt(path: string): readonly string[] {
    return this.#unset.get(path) ?? [];
  }

  map(schema: Described, element: XmlElement, path: string): unknown {
    for (const name of Object.keys(element.attributes)) {
      if (name !== 'include') this.#warn(element, `${path}/@${name}`);
    }
    if (schema.ignored === true) return null;
    if ((isListSchema(schema) || isObjectSchema(schema)) && element.text !== '') {
      this.#warn(element, path, 'has text, which has no effect: elements belong here');
    }
    if (isListSchema(schema)) return this.#container(schema.items, schema.item ?? '', element, path);
    if (isObjectSchema(schema)) return this.#object(schema, element, path);
    for (const child of element.children) this.#unknown(child, path, []);
    if (element.unset !== undefined) this.#unset.set(path, element.unset);
    return fromText(schema, element);
  }

  #container(items: Described, name: string, element: XmlElement, path: string): unknown[] {
    const named = element.children.filter((child) => child.name === name);
    for (const child of element.children) if (child.name !== name) this.#unknown(child, path, [name]);
    const list = named.map((child, index) => this.map(items, child, `${path}/${name}[${index + 1}]`));
    this.#files.set(list, element.file);
    return list;
  }

  #object(schema: TObject, element: XmlElement, path: string): Record<string, unknown> {
    const json: Record<string, unknown> = {};
    this.#files.set(json, element.file);
    const keys = keysByElement(schema);
    const given = new Set<string>();
    for (const child of element.children) {
      const key = keys.get(child.name);
      if (key === undefined) {
        this.#unknown(child, path, keys.keys(), (schema as Described).former?.get(child.name));
        continue;
      }
      const property = schema.properties[key] as Described;
      const at = `${path}/${elementName(key, property)}`;
      if (isListSchema(property) && property.item === undefined) {
        const list = (json[key] ?? []) as unknown[];
        list.push(this.map(property.items, child, `${at}[${list.length + 1}]`));
        json[key] = list;
      } else if (given.has(key)) {
        this.problems.push({ file: child.file, path: at, message: 'is given twice' });
      } else {
        given.add(key);
        const value = this.map(property, child, at);
        const isAbsent = property.ifSet === true && child.unset !== undefined && value === '';
        if (!isAbsent) json[key] = value;
      }
    }
    return json;
  }

  #warn(element: XmlElement, path: string, message = 'is unknown and has no effect'): void {
    if (this.warnings.some((warning) => warning.path === path)) return;
    this.warnings.push({ file: element.file, path, message });
  }

  /**
   * @param names of the elements that are allowed there
   * @param instead what to write in place of an element that is no longer there
   */
  #unknown({ name, file, line }: XmlElement, path: string, names: Iterable<string>, instead?: string): void {
    const meant = instead === undefined ? similar(name, names) : undefined;
    const known = `${path}/${name}`;
    if (this.#unknownElements.has(known)) return;
    this.#unknownElements.add(known);
    const hint =
      meant === undefined ? ` has no effect${instead === undefined ? '' : `: ${instead}`}` : `: did you mean ${meant}?`;
    this.warnings.push({
      file,
      path,
      message: `unknown element ${name} at line ${line}${hint}`,
      isTypo: meant !== undefined,
    });
  }
}

function keysByElement(schema: TObject): Map<string, string> {
  const keys = new Map<string, string>();
  for (const [key, property] of Object.entries(schema.properties)) {
    for (const name of elementNames(key, property)) keys.set(name, key);
  }
  return keys;
}

/** An empty flag is true, as in samples of OvenMediaEngine; one that an unset variable left empty is not. */
function fromText(schema: TSchema, { text, unset }: XmlElement): unknown {
  const { type } = schema as { type?: string };
  if (type === 'boolean' && text === '' && unset === undefined) return true;
  if (type === 'boolean' && /^(true|false)$/i.test(text)) return text.toLowerCase() === 'true';
  if ((type === 'integer' || type === 'number') && /^[+-]?\d+(\.\d+)?$/.test(text)) return Number(text);
  return text;
}
