import test from 'ava';
import type { ElementaryStream } from '../../../../src/containers/mpegts/elementary.ts';
import { DataLane } from '../../../../src/providers/mpegts-intake/data-lane.ts';
import { spliceInsert } from '../../../support/media/splice.ts';

test('a publisher that sends events without end is taken a number of, and the others are counted', (t) => {
  let taken = 0;
  const faults: string[] = [];
  const stream = { pid: 0x200, kind: 'data', form: 'SCTE-35' } as unknown as ElementaryStream;
  const events = { unit: () => void taken++, fault: (reason: string) => void faults.push(reason) };
  const lane = new DataLane(stream, { id: 512, index: 0 }, events);
  const section = spliceInsert({ eventId: 1, out: true });
  const sent = 20_000;
  for (let count = 0; count < sent; count++) lane.section(section, count);
  t.true(taken >= 100 && taken < sent / 2, `${taken} events`);
  t.is(taken + faults.length, sent);
  t.deepEqual([...new Set(faults)], ['dropped an event: the publisher sends too many']);
});
