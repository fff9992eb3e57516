import { ATTACKS } from './attacks.ts';
import { besiege } from './besiege.ts';

/**
 * Each protocol by itself, against a server of its own.
 * @param names of some protocols; none for all
 * @returns whether every server held out
 */
export async function fuzz(
  folder: string,
  seed: number,
  count: number,
  names: readonly string[],
  print: (text: string) => void,
): Promise<boolean> {
  const unknown = names.find((name) => !Object.hasOwn(ATTACKS, name));
  if (unknown !== undefined) {
    print(`"${unknown}" is none of ${Object.keys(ATTACKS).join(', ')}`);
    return false;
  }
  const fallen: string[] = [];
  for (const [name, attack] of Object.entries(ATTACKS)) {
    if (names.length > 0 && !names.includes(name)) continue;
    print(`--- ${name}`);
    if (!(await besiege(folder, seed, count, print, [attack]))) fallen.push(name);
  }
  print(fallen.length === 0 ? 'all held out' : `NOT: ${fallen.join(', ')}`);
  return fallen.length === 0;
}
