import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { argv, exit, stdout } from 'node:process';

/** How many denied words each room has. They may only fall: `--write` lowers them. */
const COUNTS = 'test/lint/words.json';

/** Words that CONTRIBUTING.md has better ones for, and those. Whole words, in any case and as parts of names. */
const DENIED: ReadonlyMap<string, string> = new Map([
  ['bury', 'mark dead'],
  ['desk', 'sessions'],
  ['distrust', 'rejections'],
  ['door', 'provider, publisher module'],
  ['doors', 'providers, publisher modules'],
  ['entrance', 'admission'],
  ['hair', 'epsilon'],
  ['hearer', 'observer'],
  ['heir', 'successor'],
  ['meanwhile', 'since, until then'],
  ['nobody', 'no client, no viewer, no node'],
  ['obituary', 'death detector'],
  ['patience', 'timeout'],
  ['picture', 'frame, video'],
  ['pictures', 'frames, video'],
  ['somebody', 'a client, a viewer, a node'],
  ['sound', 'audio'],
  ['sounds', 'audio'],
  ['strangers', 'unauthenticated peers'],
  ['tells', 'says, reports, sends'],
  ['tenure', 'lease'],
  ['told', 'notified, reported, sent'],
  ['whoever', 'a client that'],
]);

/** Terms of standards that have such a word. */
const TERMS =
  /picture (?:order count|parameter set|loss indication|timing)|picture[ _]?ids?\b|picture-in-picture|(?:frame|field|coded|leading|reference|RASL)[ -]?pictures?/gi;
/** Rooms that speak of pictures as H.264 and H.265 do. */
const OF_PICTURES: ReadonlySet<string> = new Set(['src/codecs', 'src/containers']);

/** A doc comment that begins with a pronoun: it has to be read twice to find its subject. */
const OPENING = /\/\*\*\s+(?:\* )?(?:@\w+ )?(Who|What|Whoever|Of|Those|These|It|They|The same|As of)\b/g;
/** The words of a text, and those of a name. */
const WORD = /[A-Z]?[a-z]+|[A-Z]+(?![a-z])/g;

/** A denied word of a file. */
interface Find {
  readonly word: string;
  /** Counted from 1. */
  readonly line: number;
}

/** Denied words of a text, in its order: whole words, and the openings of doc comments. @param room as of `roomOf` */
export function denied(room: string, text: string): Find[] {
  const lineOf = (index: number): number => text.slice(0, index).split('\n').length;
  const plain = text.replaceAll(TERMS, (term) => ' '.repeat(term.length));
  const words = [...plain.matchAll(WORD)].filter(([word]) => {
    const lower = word.toLowerCase();
    return DENIED.has(lower) && !(OF_PICTURES.has(room) && lower.startsWith('picture'));
  });
  return [...words, ...text.matchAll(OPENING)]
    .map(({ 0: whole, 1: opening, index }) => ({ word: opening ?? whole, line: lineOf(index) }))
    .sort((a, b) => a.line - b.line);
}

/** The folder that a file is counted with: `src/access`, `cluster`, `docs`. */
export function roomOf(path: string): string {
  const [top = '', room = '', ...rest] = path.split('/');
  return top === 'src' && rest.length > 0 ? `${top}/${room}` : top;
}

if (argv[1] === import.meta.filename) {
  const finds = new Map<string, string[]>();
  for (const path of globSync([
    '{src,cluster,deploy}/**/*.{ts,js}',
    '{src,cluster}/**/README.md',
    'docs/*.md',
  ]).sort()) {
    const room = roomOf(path);
    const found = denied(room, readFileSync(path, 'utf8')).map(({ word, line }) => {
      return `${path}:${line}: ${word}: ${DENIED.get(word.toLowerCase()) ?? 'begin with a verb or a noun'}`;
    });
    finds.set(room, [...(finds.get(room) ?? []), ...found]);
  }
  const counts = Object.fromEntries([...finds].map(([room, { length }]) => [room, length]));
  const known = JSON.parse(readFileSync(COUNTS, 'utf8')) as Record<string, number>;
  if (argv.includes('--list')) {
    for (const line of [...finds.values()].flat()) stdout.write(`${line}\n`);
  } else if (argv.includes('--write')) {
    const lower = Object.entries(counts).map(([room, count]) => [room, Math.min(count, known[room] ?? 0)]);
    writeFileSync(COUNTS, `${JSON.stringify(Object.fromEntries(lower), undefined, 2)}\n`);
  } else {
    const wrong = Object.entries(counts).filter(([room, count]) => count !== (known[room] ?? 0));
    for (const [room, count] of wrong) {
      const advice = count < (known[room] ?? 0) ? 'write down that it fell by --write' : 'see --list';
      stdout.write(
        `${room} has ${count} words that CONTRIBUTING.md denies, ${known[room] ?? 0} are known: ${advice}\n`,
      );
    }
    exit(wrong.length === 0 ? 0 : 1);
  }
}
