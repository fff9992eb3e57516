import test from 'ava';
import { TsDemuxer } from '../../../../src/containers/mpegts/demuxer.ts';
import { costOf } from '../../../support/time/cost.ts';
import { pat, pmt, TsWriter } from '../../../support/mpegts/ts-build.ts';

const PROGRAMS = 32;
const REPETITIONS = 160;
/** Far above what a busy machine makes of equal costs. */
const MOST = 30;

/** Of repetitions of a PAT, behind the tables of so many programs. */
function cost(programs: number, streams: number): number {
  const pids = Object.fromEntries(Array.from({ length: programs }, (_, at) => [at + 1, 0x100 + at]));
  const own = Array.from({ length: streams }, (_, at) => ({ pid: 0x300 + at, type: 0x06 }));
  const writer = new TsWriter(0);
  const head = [
    writer.section(pat(pids)),
    ...Object.entries(pids).map(([number, pid]) => new TsWriter(pid).section(pmt(Number(number), own))),
  ];
  const demuxer = new TsDemuxer({
    streams: () => undefined,
    pes: () => undefined,
    section: () => undefined,
    lost: () => undefined,
    fault: () => undefined,
  });
  demuxer.push(Buffer.concat(head.flat()));
  // whole rounds of its counter, so that it goes on where it ended
  const again = Buffer.concat(Array.from({ length: REPETITIONS }, () => writer.section(pat(pids))).flat());
  return costOf(() => demuxer.push(again));
}

test('tables that are repeated cost the same, whatever is in the program', (t) => {
  const usual = cost(1, 2);
  const ratio = cost(PROGRAMS, 190) / usual;
  t.true(ratio < MOST, `${ratio.toFixed(1)} times as much`);
});
