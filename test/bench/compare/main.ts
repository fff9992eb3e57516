import { mkdtempSync, rmSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { encodeClip } from '../../support/load/clip.ts';
import { number } from '../measurement.ts';
import { readArguments } from './arguments.ts';
import { checkOut, ROOT } from './checkout.ts';
import type { Comparison, CompareContext } from './comparison.ts';
import { cellsText, HEADINGS, rowsOf, rowText, type Pair } from './figures.ts';
import { memory } from './memory.ts';
import { api, files } from './rates.ts';
import { start } from './start.ts';
import { streams } from './streams.ts';
import { llhlsOne, llhlsViewers, webrtcOne, webrtcViewers } from './viewers.ts';

const ALL: readonly Comparison[] = [
  streams,
  webrtcViewers,
  webrtcOne,
  llhlsViewers,
  llhlsOne,
  memory,
  start,
  files,
  api,
];

/** `npm run bench -- compare <commit> [measurement ...] [--pairs N]`. @returns whether everything could be measured */
export async function compare(args: readonly string[]): Promise<boolean> {
  const { commit, names, pairs } = readArguments(
    args,
    ALL.map(({ name }) => name),
  );
  const folder = mkdtempSync(join(tmpdir(), 'kiln-compare-'));
  const undo: (() => void)[] = [() => rmSync(folder, { recursive: true, force: true })];
  // also when it is given up: git remembers worktrees
  process.once('exit', () => undo.toReversed().forEach((act) => act()));
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130));

  progress(`building ${commit}`);
  const other = checkOut(commit, join(folder, 'commit'));
  undo.push(other.remove);
  const clip = join(folder, 'clip.flv');
  await encodeClip(clip, { size: '1280x720', kbit: 2500 });

  print(`working tree and ${other.hash}, ${pairs} pairs, load ${number(loadavg()[0] ?? 0, 1)}`);
  print('720p30, 2.5 Mbit/s, H.264 and AAC; CPU in percent of one core; median (min..max)');
  print(cellsText(HEADINGS));
  let complete = true;
  for (const one of ALL.filter(({ name }) => names.includes(name))) {
    try {
      const run = (root: string, pair: number) => runOnce(one, { root, clip, folder }, `${pair} of ${pairs}`);
      const measured: Pair[] = [];
      for (let pair = 1; pair <= pairs; pair++)
        measured.push({ tree: await run(ROOT, pair), commit: await run(other.root, pair) });
      for (const row of rowsOf(measured)) print(rowText(row));
    } catch (error) {
      complete = false;
      print(cellsText([one.name, `failed: ${(error as Error).message}`]));
    }
  }
  return complete;
}

function runOnce(one: Comparison, context: CompareContext, pair: string) {
  progress(`${one.name}, pair ${pair}, ${context.root === ROOT ? 'working tree' : 'commit'}`);
  return one.run(context);
}

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

function progress(text: string): void {
  process.stderr.write(`bench: ${text}\n`);
}
