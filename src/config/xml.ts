import { readFileSync } from 'node:fs';
import { XMLParser, XMLValidator } from 'fast-xml-parser';
import { ConfigError } from './config-error.ts';

/** An element. `text` is its character data without surrounding space; `file` and `line` are its position. */
export interface XmlElement {
  readonly name: string;
  readonly file: string;
  /** Counted from 1. */
  readonly line: number;
  readonly attributes: Readonly<Record<string, string>>;
  readonly children: readonly XmlElement[];
  readonly text: string;
  /** Environment variables without a default in its text that are not set or are empty. */
  readonly unset?: readonly string[];
}

const MAX_FILE_BYTES = 4 * 1024 * 1024;
const MAX_DEPTH = 64;
const ATTRIBUTES = ':@';
const TEXT = '#text';
const PLACE = XMLParser.getMetaDataSymbol() as unknown as symbol;

const parser = new XMLParser({
  preserveOrder: true,
  ignoreAttributes: false,
  attributeNamePrefix: '',
  parseTagValue: false,
  parseAttributeValue: false,
  htmlEntities: true,
  captureMetaData: true,
  maxNestedTags: MAX_DEPTH,
});

/**
 * Reads the root element of an XML file. Document types, and with them entities of a file's own, are rejected.
 * @throws ConfigError the file cannot be read, is too big or is not well-formed (with its line)
 */
export function readXml(file: string): XmlElement {
  let source: string;
  try {
    const bytes = readFileSync(file);
    if (bytes.length > MAX_FILE_BYTES) throw new Error(`larger than ${MAX_FILE_BYTES} bytes`);
    source = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (error) {
    throw new ConfigError([`${file}: ${(error as Error).message}`]);
  }
  return parseXml(source, file);
}

/** Reads the root element, as `readXml` does, from text. */
export function parseXml(source: string, file: string): XmlElement {
  const visible = source.replace(/<!--[\s\S]*?(?:-->|$)|<!\[CDATA\[[\s\S]*?(?:\]\]>|$)/g, '');
  if (/<!DOCTYPE/i.test(visible)) throw new ConfigError([`${file}: a document type is not allowed`]);
  const valid = XMLValidator.validate(source);
  if (valid !== true) throw new ConfigError([`${file}:${valid.err.line}: ${valid.err.msg}`]);
  let nodes: Node[];
  try {
    nodes = parser.parse(source) as Node[];
  } catch (error) {
    throw new ConfigError([`${file}: ${(error as Error).message}`]);
  }
  const lineAt = lineFinder(source);
  const roots = nodes.map((node) => toElement(node, file, lineAt)).filter((element) => element !== undefined);
  const [root] = roots;
  if (root === undefined || roots.length > 1) throw new ConfigError([`${file}: needs one root element`]);
  return root;
}

/** Node of the parser with order kept: its name as the one key, which holds its children. */
type Node = Record<string, Node[] | string | Record<string, string>>;

/** Finds the line, from 1, of an index in the text. Indexes must not decrease from call to call. */
function lineFinder(source: string): (index: number) => number {
  let line = 1;
  let from = 0;
  return (index) => {
    for (let at = source.indexOf('\n', from); at >= 0 && at < index; at = source.indexOf('\n', from)) {
      line++;
      from = at + 1;
    }
    return line;
  };
}

function toElement(node: Node, file: string, lineAt: (index: number) => number): XmlElement | undefined {
  const name = Object.keys(node).find((key) => key !== ATTRIBUTES);
  if (name === undefined || name === TEXT || name.startsWith('?')) return undefined;
  const content = node[name] as Node[];
  return {
    name,
    file,
    line: lineAt((node as { [PLACE]?: { startIndex?: number } })[PLACE]?.startIndex ?? 0),
    attributes: (node[ATTRIBUTES] ?? {}) as Record<string, string>,
    children: content.map((child) => toElement(child, file, lineAt)).filter((child) => child !== undefined),
    text: content
      .map((child) => (child[TEXT] as string | undefined) ?? '')
      .join('')
      .trim(),
  };
}
