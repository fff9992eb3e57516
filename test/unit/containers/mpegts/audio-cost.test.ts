import test from 'ava';
import { buildAdtsHeader } from '../../../../src/codecs/aac.ts';
import { AudioFrames } from '../../../../src/containers/mpegts/audio-frames.ts';
import { audioSyntax, type AudioForm } from '../../../../src/containers/mpegts/audio-syntax.ts';
import { opusControlHeader } from '../../../../src/containers/mpegts/opus.ts';
import { costOf } from '../../../support/time/cost.ts';

const PES_BYTES = 55_000;
/** What a transport packet holds of a PES packet of its own. */
const SMALL_BYTES = 170;
const ROUNDS = 4;
/** Far above what a busy machine makes of equal costs, and far below what an exception per byte costs. */
const MOST = 100;

const hex = (text: string) => Buffer.from(text, 'hex');
const frame = (head: Buffer, bytes: number) => Buffer.concat([head, Buffer.alloc(bytes - head.length, 0x11)]);
const adts = (config: number, bytes: number) =>
  frame(buildAdtsHeader({ objectType: 2, samplerate: 48_000, channelConfiguration: config }, bytes - 7), bytes);
const severalBlocks = adts(2, 8);
severalBlocks[6] = 3;

/** What is repeated, of each form: what encoders send, and what costs most for each byte. */
const FILLS: Readonly<Record<AudioForm, { good: Buffer; bad: readonly Buffer[] }>> = {
  ADTS: {
    good: adts(2, 250),
    bad: [hex('fff1'), hex('ff'), adts(2, 7), adts(2, 8), adts(0, 8), severalBlocks, hex('fff150800100fc')],
  },
  LATM: {
    good: frame(hex('56e0f7'), 250),
    bad: [hex('56e0'), hex('56'), hex('56e000'), hex('56e00180'), hex('56e00100')],
  },
  'MPEG audio': {
    good: frame(hex('fffb9064'), 417),
    bad: [hex('fffb'), hex('ff'), hex('fffb9c'), frame(hex('fff314c4'), 24)],
  },
  'AC-3': {
    good: frame(hex('0b773e71104043e1'), 512),
    bad: [hex('0b77'), hex('0b'), hex('0b77400337878000'), hex('0b77000337878000'), hex('0b77000037878000')],
  },
  Opus: {
    good: Buffer.concat([opusControlHeader(200), frame(hex('fc'), 200)]),
    bad: [hex('7fe0'), hex('7f'), hex('7fe000'), hex('7fe00103'), hex('7fe001fc'), hex('7fe0ff')],
  },
};

/** Of filling up whole PES packets. */
function cost(form: AudioForm, fill: Buffer, bytes: number): number {
  const payload = Buffer.alloc(bytes, fill);
  return costOf(() => {
    const cutter = new AudioFrames(audioSyntax(form, undefined), { frame: () => undefined, fault: () => undefined });
    for (let left = ROUNDS * PES_BYTES; left > 0; left -= bytes) cutter.push(payload, 90_000);
  });
}

for (const [form, { good, bad }] of Object.entries(FILLS) as [AudioForm, (typeof FILLS)[AudioForm]][]) {
  test(`${form}: no bytes cost much more than sound does`, (t) => {
    for (const bytes of [PES_BYTES, SMALL_BYTES]) {
      const usual = cost(form, good, bytes);
      for (const fill of bad) {
        const ratio = cost(form, fill, bytes) / usual;
        t.true(ratio < MOST, `${fill.toString('hex')} in packets of ${bytes}: ${ratio.toFixed(1)} times as much`);
      }
    }
  });
}
