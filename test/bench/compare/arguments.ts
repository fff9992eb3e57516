export interface CompareArguments {
  /** What the working tree is held against: anything that git resolves to a commit. */
  readonly commit: string;
  /** Names of measurements, each once, in the order of `known`. */
  readonly names: readonly string[];
  readonly pairs: number;
}

const PAIRS = 5;
const USAGE = 'npm run bench -- compare <commit> [measurement ...] [--pairs N]';

/**
 * Reads what follows `compare` on the command line.
 * @param known names of all measurements, which is what runs when none is named
 * @throws Error with the usage
 */
export function readArguments(args: readonly string[], known: readonly string[]): CompareArguments {
  const words: string[] = [];
  let pairs = PAIRS;
  for (const [i, word] of args.entries()) {
    if (args[i - 1] === '--pairs') continue;
    if (word === '--pairs') pairs = readPairs(args[i + 1]);
    else if (word.startsWith('-')) throw refusal(`${word} is unknown`, known);
    else words.push(word);
  }
  const [commit, ...wanted] = words;
  if (commit === undefined) throw refusal('a commit is missing', known);
  const unknown = wanted.filter((name) => !known.includes(name));
  if (unknown.length > 0) throw refusal(`no such measurement: ${unknown.join(', ')}`, known);
  return { commit, names: known.filter((name) => wanted.length === 0 || wanted.includes(name)), pairs };

  function readPairs(text = ''): number {
    if (!/^[1-9]\d{0,2}$/.test(text)) throw refusal('--pairs takes a number from 1 to 999', known);
    return Number(text);
  }
}

function refusal(reason: string, known: readonly string[]): Error {
  return new Error(`${reason}\nusage: ${USAGE}\nmeasurements: ${known.join(', ')}`);
}
