import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { argv, exit, stdout } from 'node:process';

/** `[text](target)`, without targets in code. */
const LINK = /\[[^\]]*\]\(([^)\s]+)\)/g;
const HEADING = /^#+\s+(.+)$/gm;
/** A path in backquotes that begins with one of the repository's folders: `src/core/stream.ts`. */
const PATH = /`((?:src|cluster|config|deploy|docs|examples|grafana|test|\.ci)\/[\w.*/{}-]*)`/g;
/** A document that a comment refers to, by its path from the root of the repository, with a heading or without. */
const DOCUMENT = /(?<![\w./-])((?:[\w.-]+\/)*[\w-]+\.md(?:#[\w-]+)?)/g;
const COMMENT = /\/\*[^]*?\*\/|(?<=^|\s)\/\/.*$/gm;
const SCRIPT = /`npm (?:run )?(start|test|[\w-]+)/g;
const NPM_COMMANDS = new Set(['ci', 'i', 'install', 'run']);

/** Blocks of commands. */
const COMMANDS = /^```sh\b.*\n([^]*?)^```$/gm;
/** A variable of a reader's own, `$token`: those of the environment are in capitals. */
const VARIABLE = /\$([a-z]\w*)/g;

/** What a document may speak of: paths are from the root of the repository. */
export interface Surroundings {
  readonly exists: (path: string) => boolean;
  /** Text of another document. */
  readonly read: (path: string) => string;
  readonly scripts: ReadonlySet<string>;
}

/**
 * Faults of a document: links, headings and paths that lead nowhere, npm scripts that do not exist, commands with a variable
 * that the page has not set before.
 * @param document its path from the root of the repository
 */
export function faults(document: string, text: string, { exists, read, scripts }: Surroundings): string[] {
  const lost = [
    ...all(LINK, text)
      .filter((target) => !/^[a-z]+:/.test(target))
      .filter((target) => {
        const [path = '', fragment] = target.split('#');
        const file = join(dirname(document), path);
        if (path !== '' && !exists(file)) return true;
        return fragment !== undefined && !anchorsOf(path === '' ? text : read(file)).has(fragment);
      }),
    ...all(PATH, text).filter((path) => !exists(path)),
    ...all(SCRIPT, text)
      .filter((name) => !scripts.has(name) && !NPM_COMMANDS.has(name))
      .map((name) => `npm run ${name}`),
  ];
  return [
    ...lost.map((target) => `${document}: there is no ${target}`),
    ...unset(text).map((name) => `${document}: commands use $${name}, which the page has not set`),
  ];
}

/** Faults of the comments of a source file: documents, headings and paths that do not exist. */
export function commentFaults(file: string, source: string, { exists, read }: Omit<Surroundings, 'scripts'>): string[] {
  const comments = (source.match(COMMENT) ?? []).join('\n');
  const lost = [
    ...all(PATH, comments).filter((path) => !exists(path)),
    ...all(DOCUMENT, comments).filter((target) => {
      const [path = '', fragment] = target.split('#');
      return !exists(path) || (fragment !== undefined && !anchorsOf(read(path)).has(fragment));
    }),
  ];
  return lost.map((target) => `${file}: there is no ${target}`);
}

/** Variables of commands that no command above has set. */
function unset(text: string): string[] {
  const commands = all(COMMANDS, text)
    .join('')
    // what the shell does not look into
    .replaceAll(/'[^']*'/g, "''");
  const isSet = (name: string, before: number) => new RegExp(`(?:^|[\\s;])${name}=`).test(commands.slice(0, before));
  const names = [...commands.matchAll(VARIABLE)].filter(({ 1: name = '', index }) => !isSet(name, index));
  return [...new Set(names.map(({ 1: name = '' }) => name))];
}

function anchorsOf(text: string): Set<string> {
  return new Set(all(HEADING, text).map(anchor));
}

function all(pattern: RegExp, text: string): string[] {
  return [...text.matchAll(pattern)].map((match) => match[1] ?? '');
}

/** The anchor that a forge makes of a heading. */
export function anchor(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .trim()
    .replaceAll(/\s/g, '-');
}

if (argv[1] === import.meta.filename) {
  const { scripts } = JSON.parse(readFileSync('package.json', 'utf8')) as { scripts: Record<string, string> };
  const exists = (path: string) => (path.includes('*') ? globSync(path).length > 0 : existsSync(path));
  const read = (path: string) => readFileSync(path, 'utf8');
  const found = [
    ...globSync(['*.md', '.github/**/*.md', '{docs,examples}/**/*.md', '{src,cluster}/**/README.md']).flatMap(
      (document) => faults(document, read(document), { exists, read, scripts: new Set(Object.keys(scripts)) }),
    ),
    ...globSync('{src,cluster,deploy,grafana,test}/**/*.{ts,js}').flatMap((file) =>
      commentFaults(file, read(file), { exists, read }),
    ),
  ];
  for (const fault of found) stdout.write(`${fault}\n`);
  exit(found.length === 0 ? 0 : 1);
}
