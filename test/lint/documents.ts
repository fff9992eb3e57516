import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { argv, exit, stdout } from 'node:process';

/** `[text](target)`, without targets in code. */
const LINK = /\[[^\]]*\]\(([^)\s]+)\)/g;
const HEADING = /^#+\s+(.+)$/gm;
/** A path in backquotes that begins with one of the repository's folders: `src/core/stream.ts`. */
const PATH = /`((?:src|cluster|config|deploy|test|\.ci)\/[\w.*/{}-]*)`/g;
const SCRIPT = /`npm (?:run )?(start|test|[\w-]+)/g;
const NPM_COMMANDS = new Set(['ci', 'i', 'install', 'run']);

/**
 * Faults of a document: links and paths that lead nowhere, npm scripts that do not exist.
 * @param document its path from the root of the repository
 * @param exists whether a path from the root of the repository does
 */
export function faults(
  document: string,
  text: string,
  exists: (path: string) => boolean,
  scripts: ReadonlySet<string>,
): string[] {
  const anchors = new Set(all(HEADING, text).map(anchor));
  const lost = [
    ...all(LINK, text)
      .filter((target) => !/^[a-z]+:/.test(target))
      .filter((target) => {
        const [path = '', fragment] = target.split('#');
        return path === '' ? !anchors.has(fragment ?? '') : !exists(join(dirname(document), path));
      }),
    ...all(PATH, text).filter((path) => !exists(path)),
    ...all(SCRIPT, text)
      .filter((name) => !scripts.has(name) && !NPM_COMMANDS.has(name))
      .map((name) => `npm run ${name}`),
  ];
  return lost.map((target) => `${document}: there is no ${target}`);
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
  const found = globSync(['*.md', 'docs/**/*.md']).flatMap((document) =>
    faults(document, readFileSync(document, 'utf8'), exists, new Set(Object.keys(scripts))),
  );
  for (const fault of found) stdout.write(`${fault}\n`);
  exit(found.length === 0 ? 0 : 1);
}
