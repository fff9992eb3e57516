import { globSync, readFileSync } from 'node:fs';
import { argv, exit, stdout } from 'node:process';

/** Explains every line of level warn or above. */
const PAGE = 'docs/log-messages.md';
/** Says what to do about the main events among them. */
const RUNBOOK = 'docs/troubleshoot.md';

/** The beginning of a call that logs a line of level warn or above, or may do so. */
const LINE =
  /\blog(?:\(\w+\))?\??(?:\.(?:warn|error|fatal)|\[[^\]]*'(?:warn|error|fatal)'[^\]]*\]|\[(?:[^\]]* )?level\])\(/g;
/** The beginning of a call that counts a fault, which is logged as it is, with level warn. */
const FAULT = /\bfaults\.count\(/g;
const QUOTES = `'"\``;
/** What stands for a value in a message. */
const VALUE = '…';
/** First cell of a row of the page. */
const ROW = /^\| `([^`]+)`/gm;

/**
 * What is logged is made elsewhere: by the file and what the call is given, what the page has for it, if that is more than a
 * sentence. Faults that are made elsewhere are explained together.
 */
const MADE_ELSEWHERE: ReadonlyMap<string, readonly string[]> = new Map([
  ['src/access/refusal-log.ts: line', ['… refused: …']],
  ['src/alerts/index.ts: text', []],
  [
    'src/server/cluster-log.ts: `${REJECTED[kind]}: ${name}: ${reason}${advice}`',
    [
      'an entry of the configuration in Redis is refused, and what this node knew of it stays: …',
      'what Redis has of a node is refused: …',
      'calls with a node are refused: …',
    ],
  ],
  ['src/log/log.ts: fault', []],
  [
    'src/main.ts: warning',
    [
      '… is unknown and has no effect',
      '… has no effect',
      '… has text, which has no effect: elements belong here',
      '…: no file matches include="…" of …',
      'StunServer …; ${PublicIP} is …, an address of this machine',
      '… offers every client … addresses of this machine (…, ...), most of which slow down connecting: name the one that clients reach',
      'DRM of the application … does not cover …: RefuseClear closes them',
    ],
  ],
  [
    'src/protocols/srt/guard/port-guard.ts: why',
    [
      'the packet filter of an SRT port is too long for the kernel (net.core.optmem_max): a hostile SRT caller could delay this port',
    ],
  ],
  ['src/channels/files/channel-folder.ts: warning', []],
  [
    'src/channels/files/channel-folder.ts: text',
    [
      'the channel file is not valid: its previous content remains in use',
      'the channel file is not valid: it has no effect',
    ],
  ],
  [
    'src/channels/files/scanned-folder.ts: text',
    [
      'the folder of channel files cannot be read: trying again, and its channels remain',
      'the folder has too many channel files: those that came last have no effect',
    ],
  ],
  ['src/tasks/configured/stream-maps.ts: finding', []],
  ['src/pushing/pusher.ts: warning', []],
  ['src/transcode/codecs.ts: text', ['ffmpeg was not found: the list of codecs is empty']],
  ['src/webrtc/log.ts: text', []],
]);

/** What is logged with level warn or above, or counted as a fault. */
interface Logged {
  /** Texts that it can have; none where it is made elsewhere. */
  readonly texts: readonly string[];
  /** What the call is given for the text. */
  readonly given: string;
  /** Id of a main event. */
  readonly event?: string;
  readonly isFault: boolean;
}

/** All that a source logs with level warn or above. */
export function logged(source: string): Logged[] {
  const found = (beginning: RegExp, isFault: boolean): Logged[] =>
    [...source.matchAll(beginning)].map(({ 0: { length }, index }) => {
      const all = argumentsAt(source, index + length);
      const given = (all.at(-1) ?? '').replaceAll(/\s+/g, ' ');
      const event = all.length > 1 ? /\bevent: '([^']+)'/.exec(all[0] ?? '')?.[1] : undefined;
      return { texts: textsOf(given), given, isFault, ...(event !== undefined && { event }) };
    });
  return [...found(LINE, false), ...found(FAULT, true)];
}

/** Arguments of a call, from behind its parenthesis on. */
function argumentsAt(source: string, start: number): string[] {
  const found: string[] = [];
  let depth = 0;
  let from = start;
  for (let at = start; at < source.length && depth >= 0; at++) {
    const char = source[at] ?? '';
    if (QUOTES.includes(char)) at = endOfString(source, at);
    else if ('([{'.includes(char)) depth++;
    else if (')]}'.includes(char)) depth--;
    if (depth >= 0 && (depth > 0 || char !== ',')) continue;
    found.push(source.slice(from, at).trim());
    from = at + 1;
  }
  return found.filter((text) => text !== '');
}

/** Where a string or template ends that begins here. */
function endOfString(source: string, start: number): number {
  const quote = source[start];
  for (let at = start + 1; at < source.length; at++) {
    if (source[at] === '\\') at++;
    else if (source[at] === quote) return at;
    else if (quote === '`' && source.startsWith('${', at)) at = endOfValue(source, at + 2);
  }
  return source.length;
}

/** Where the value of a template ends. */
function endOfValue(source: string, start: number): number {
  let depth = 0;
  for (let at = start; at < source.length; at++) {
    const char = source[at] ?? '';
    if (QUOTES.includes(char)) at = endOfString(source, at);
    else if (char === '{') depth++;
    else if (char === '}' && --depth < 0) return at;
  }
  return source.length;
}

/** Texts that an expression of literals can have: those joined by `+` are one. None where it has no words of its own. */
function textsOf(expression: string): string[] {
  const texts: string[] = [];
  let end = 0;
  for (let at = 0; at < expression.length; at++) {
    if (!QUOTES.includes(expression[at] ?? '')) continue;
    const before = expression.slice(end, at).trim();
    end = endOfString(expression, at) + 1;
    const text = shown(expression.slice(at, end));
    if (before === '+') texts.push((texts.pop() ?? '') + text);
    else texts.push(text);
    at = end - 1;
  }
  return texts.filter((text) => /\p{L}/u.test(text));
}

/** Text of a literal, with its quotes, as the page has it. */
function shown(literal: string): string {
  let text = '';
  for (let at = 1; at < literal.length - 1; at++) {
    if (literal[at] === '\\') text += literal[++at];
    else if (literal[0] === '`' && literal.startsWith('${', at)) {
      at = endOfValue(literal, at + 2);
      text += VALUE;
    } else text += literal[at];
  }
  return text;
}

/**
 * Lines that the page does not explain, explains twice or that nothing logs, and main events that the other page does not name.
 * @param sources by path
 */
export function faults(sources: ReadonlyMap<string, string>, page: string, runbook: string): string[] {
  const rows = [...page.matchAll(ROW)].map(([, text = '']) => text);
  const found: string[] = [];
  const expected = new Set<string>();
  for (const [path, source] of sources) {
    for (const { texts, given, event, isFault } of logged(source)) {
      const elsewhere = MADE_ELSEWHERE.get(`${path}: ${given}`);
      const all = elsewhere ?? texts;
      for (const text of all) expected.add(text);
      if (all.length === 0 && elsewhere === undefined && !isFault)
        found.push(`${path}: log-messages.ts does not know what text ${given} can have`);
      for (const text of all) if (!rows.includes(text)) found.push(`${path}: ${PAGE} does not explain \`${text}\``);
      if (event !== undefined && !runbook.includes(`\`${event}\``))
        found.push(`${path}: ${RUNBOOK} does not name \`${event}\``);
    }
  }
  for (const [at, text] of rows.entries()) {
    if (!expected.has(text)) found.push(`${PAGE}: nothing logs \`${text}\``);
    if (rows.indexOf(text) < at) found.push(`${PAGE} has \`${text}\` twice`);
  }
  return found;
}

if (argv[1] === import.meta.filename) {
  const read = (path: string) => readFileSync(path, 'utf8');
  const sources = new Map(globSync('{src,cluster}/**/*.ts').map((path) => [path, read(path)]));
  const found = faults(sources, read(PAGE), read(RUNBOOK));
  for (const fault of found) stdout.write(`${fault}\n`);
  exit(found.length === 0 ? 0 : 1);
}
