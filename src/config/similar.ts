const MOST_EDITS = 2;
/** Edits allowed: one for each so many letters of a name. */
const LETTERS_PER_EDIT = 3;

/** Name that a mistyped one was probably meant to be; undefined when none is similar. */
export function similar(mistyped: string, names: Iterable<string>): string | undefined {
  const limit = Math.min(MOST_EDITS, Math.floor(mistyped.length / LETTERS_PER_EDIT));
  let [best, least]: [string | undefined, number] = [undefined, limit + 1];
  for (const name of names) {
    if (Math.abs(name.length - mistyped.length) >= least) continue;
    const edits = distance(mistyped.toLowerCase(), name.toLowerCase());
    if (edits < least) [best, least] = [name, edits];
  }
  return best;
}

/** Number of letters to insert, remove, replace, or swap with their neighbour (optimal string alignment). */
function distance(one: string, other: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: other.length + 1 }, (_, index) => index);
  for (let i = 1; i <= one.length; i++) {
    const row = [i];
    for (let j = 1; j <= other.length; j++) {
      const replaced = (last[j - 1] as number) + (one[i - 1] === other[j - 1] ? 0 : 1);
      let edits = Math.min((last[j] as number) + 1, (row[j - 1] as number) + 1, replaced);
      const isSwap = i > 1 && j > 1 && one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1];
      if (isSwap) edits = Math.min(edits, (beforeLast[j - 2] as number) + 1);
      row.push(edits);
    }
    [beforeLast, last] = [last, row];
  }
  return last[other.length] as number;
}
