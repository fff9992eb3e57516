import { BEEPS, skewedClocks } from '../unit/transcode/clocks.ts';
import { killChildren } from '../unit/transcode/kills.ts';
import { makeClip } from '../unit/transcode/sources.ts';

const KILLS = 50;
const SECONDS = 3600;
/** How far sound and picture may be apart. */
const APART = 0.04;
const TOLD = 10;

/**
 * Encoders that are killed again and again, and an hour of a source whose clocks do what they should not.
 * @returns whether nothing was missing and sound stayed with the picture
 */
export async function transcode(seed: number, print: (text: string) => void): Promise<boolean> {
  print(`seed ${seed}`);
  const killed = await killChildren(await makeClip(), KILLS, seed);
  print(`${KILLS} kills in ${killed.seconds.toFixed(0)} s of media: ${killed.faults.length} faults`);
  const source = await makeClip({ seconds: 8, width: 160, height: 90, rate: 5, gop: 5, sound: BEEPS });
  const clocks = await skewedClocks(source, SECONDS, seed);
  const worst = `${(clocks.worst * 1000).toFixed(1)} ms`;
  print(
    `${SECONDS} s of drift, gaps and jumps: ${clocks.beeps} beeps, ${worst} off at the most, ${clocks.faults.length} faults`,
  );
  const faults = [...killed.faults, ...clocks.faults];
  for (const fault of faults.slice(0, TOLD)) print(`        ${fault}`);
  return faults.length === 0 && Math.abs(clocks.worst) < APART;
}
