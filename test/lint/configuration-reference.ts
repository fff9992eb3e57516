import { describe, DESCRIPTIONS } from '../../src/config/descriptions.ts';
import { Server } from '../../src/config/elements/server.ts';
import { elementName } from '../../src/config/names.ts';
import { isListSchema, isObjectSchema, type Described } from '../../src/config/resolve.ts';

/** An element that may stand in Server.xml, as its description in `src/config/elements/` has it. */
interface Element {
  /** Names from `Server` on. */
  readonly path: readonly string[];
  readonly type: string;
  readonly default: string;
}

/** Elements with so many below them have a section of their own. */
const SECTION_SIZE = 8;

/** Ends of the table that nothing in a list of paths needs. */
function unusedDescriptions(paths: readonly (readonly string[])[]): string[] {
  const used = new Set(paths.map(describe));
  return Object.entries(DESCRIPTIONS).flatMap(([end, text]) => (used.has(text) ? [] : [end]));
}

/** All elements below one, each before those in it. */
function elementsOf(schema: Described, path: readonly string[]): Element[] {
  const inner = isListSchema(schema) ? schema.items : schema;
  if (!isObjectSchema(inner)) return [];
  const required = new Set<string>(inner.required);
  return Object.entries(inner.properties as Record<string, Described>).flatMap(([key, property]) => {
    const names = [elementName(key, property), ...(property.item === undefined ? [] : [property.item])];
    const own = [...path, ...names];
    return [
      { path: own, type: typeOf(property), default: defaultOf(property, required.has(key)) },
      ...elementsOf(property, own),
    ];
  });
}

function typeOf(schema: Described): string {
  const inner = isListSchema(schema) ? schema.items : schema;
  const type = isObjectSchema(inner) ? 'elements' : schema.ignored === true ? 'anything' : (inner.is ?? 'a text');
  return isListSchema(schema) ? `${type}, any number of times` : type;
}

function defaultOf(schema: Described, isRequired: boolean): string {
  const { default: value } = schema;
  if (value === undefined) return isRequired ? '**required**' : '';
  if (typeof value === 'object') return '';
  return value === '' ? 'empty' : `\`${String(value)}\``;
}

/** docs/configuration.md. @throws Error an element has no description */
export function configurationReference(): string {
  const all = elementsOf(Server, ['Server']);
  const undescribed = all.filter(({ path }) => describe(path) === undefined);
  if (undescribed.length > 0)
    throw new Error(
      `src/config/descriptions.ts does not describe ${undescribed.map(({ path }) => path.join('/')).join(', ')}`,
    );
  const unused = unusedDescriptions(all.map(({ path }) => path));
  if (unused.length > 0)
    throw new Error(`src/config/descriptions.ts describes what no element needs: ${unused.join(', ')}`);
  return [
    '# Configuration reference',
    '',
    'Every element of Server.xml that Kiln knows, made from the descriptions that also check the file (`npm run reference`).',
    'Kiln reads the format of OvenMediaEngine, version 8, with its `include` attributes and its macros `${env:NAME:default}` and',
    '`${PublicIP}`. In the management API an element is a key with a small first letter. How to configure what:',
    '[Configure](configure.md).',
    '',
    ...sections(all, ['Server']),
  ].join('\n');
}

/** A table of what is in an element, and sections for those in it that have much in them. */
function sections(all: readonly Element[], root: readonly string[]): string[] {
  const within = (path: readonly string[], parent: readonly string[]): boolean =>
    path.length > parent.length && parent.every((name, index) => path[index] === name);
  const below = all.filter(({ path }) => within(path, root));
  const large = below.filter(({ path }) => below.filter((other) => within(other.path, path)).length >= SECTION_SIZE);
  const own = large.filter(({ path }) => !large.some((other) => within(path, other.path)));
  const rows = below.filter(({ path }) => !own.some((section) => within(path, section.path)));
  const title = root.join('/');
  return [
    `## ${title}`,
    '',
    ...(root.length > 1 ? [`${describe(root)}`, ''] : []),
    '| element | value | default | |',
    '| --- | --- | --- | --- |',
    ...rows.map(({ path, type, default: value }) => {
      const name = path.slice(root.length).join('/');
      const section = own.find((other) => other.path === path);
      const shown = section === undefined ? `\`${name}\`` : `[\`${name}\`](#${anchor(path.join('/'))})`;
      return `| ${shown} | ${cell(type)} | ${cell(value)} | ${cell(describe(path) ?? '')} |`;
    }),
    '',
    ...own.flatMap(({ path }) => sections(all, path)),
  ];
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|');
}

function anchor(title: string): string {
  return title.toLowerCase().replaceAll('/', '');
}
