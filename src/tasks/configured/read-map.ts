import { createHash } from 'node:crypto';
import { expandEnvironment, type Environment } from '../../config/macros.ts';
import { elementPath } from '../../config/names.ts';
import { readConfig } from '../../config/read.ts';
import { XmlToJson } from '../../config/xml-json.ts';
import { parseXml, type XmlElement } from '../../config/xml.ts';
import { wildcard } from '../../lib/wildcard.ts';
import type { ConfiguredEntry } from './kind.ts';
import type { EntryNames, MapEntry, MapFormat } from './map-format.ts';

const MAX_ENTRIES = 1000;
const SOURCE = '${SourceStream}';
/** Entries are checked with these when their file is read. */
const SAMPLE: EntryNames = { vhost: 'vhost', app: 'app', stream: 'stream', source: 'source' };

export interface MapReading {
  readonly entries: readonly ConfiguredEntry[];
  /** Entries that are not used, and what in others has no effect, each with its place. */
  readonly findings: readonly string[];
}

/**
 * Reads a stream map. Entries that are off are left out, and so are those that are wrong.
 * @param file names the file in what is found
 * @throws ConfigError the text is not well-formed; Error it is another file
 */
export function readMap<E extends MapEntry>(
  format: MapFormat<E>,
  text: string,
  file: string,
  env: Environment,
): MapReading {
  const root = expandEnvironment(parseXml(text, file), env);
  if (root.name !== format.root) throw new Error(`the root element must be ${format.root}, not ${root.name}`);
  if (root.children.length > MAX_ENTRIES) throw new Error(`more than ${MAX_ENTRIES} entries`);
  const entries = new Map<string, ConfiguredEntry>();
  const findings: string[] = [];
  for (const element of root.children) {
    const place = `${file}:${element.line}`;
    try {
      const entry = readEntry(format, element, place, findings);
      const same = entry && entries.get(entry.key);
      if (same !== undefined) throw new Error(`it is the same as the one at ${same.place}`);
      if (entry !== undefined) entries.set(entry.key, entry);
    } catch (error) {
      findings.push(`${place}: the entry is not used: ${(error as Error).message}`);
    }
  }
  return { entries: [...entries.values()], findings };
}

/** @returns undefined for one that is off @throws Error why it cannot be used */
function readEntry<E extends MapEntry>(
  format: MapFormat<E>,
  element: XmlElement,
  place: string,
  findings: string[],
): ConfiguredEntry | undefined {
  if (element.name !== format.item) throw new Error(`it is ${element.name}, where only ${format.item} can be`);
  const filled = withoutEmpty(element);
  const mapper = new XmlToJson();
  const json = mapper.map(format.schema, filled, format.item);
  const reading = readConfig(format.schema, json);
  if (isOff(json)) return undefined;
  const unset = element.children.flatMap((child) => child.unset ?? []);
  if (unset.length > 0) throw new Error(`the environment has no ${unset.join(', ')}`);
  const [twice] = mapper.problems;
  if (twice !== undefined) throw new Error(`${twice.path} ${twice.message}`);
  if (!reading.ok) {
    const { path, message } = reading.problems[0] ?? { path: [], message: 'is wrong' };
    throw new Error(`${elementPath(format.item, format.schema, path)}: ${message}`);
  }
  for (const { path, message } of mapper.warnings) findings.push(`${place}: ${path}: ${message}`);
  return entryOf(format, reading.config as unknown as E, place);
}

function entryOf<E extends MapEntry>(format: MapFormat<E>, config: E, place: string): ConfiguredEntry {
  const { streamName } = config;
  const strange = /\$\{[^}]*\}/.exec(streamName.replaceAll(SOURCE, ''));
  if (strange !== null) throw new Error(`StreamName: ${strange[0]} is none of its macros: ${SOURCE}`);
  format.task(config, SAMPLE, undefined);
  const { enable: _, ...content } = config;
  const plain = streamName.includes(SOURCE) ? undefined : wildcard(streamName);
  return {
    key: createHash('sha256').update(JSON.stringify(content)).digest('base64url'),
    place,
    task: ({ name, input }, application) => {
      const pattern = plain ?? wildcard(streamName.replaceAll(SOURCE, () => input.name));
      if (!pattern.test(name)) return undefined;
      const names = { vhost: application.vhost.name, app: application.name, stream: name, source: input.name };
      return format.task(config, names, application);
    },
  };
}

/** An element without text says as little as one that is not there. */
function withoutEmpty(element: XmlElement): XmlElement {
  const children = element.children.filter(({ text, children: own }) => text !== '' || own.length > 0);
  return { ...element, children };
}

/** Whatever else is wrong with it. */
function isOff(json: unknown): boolean {
  return (json as { readonly enable?: unknown }).enable === false;
}
