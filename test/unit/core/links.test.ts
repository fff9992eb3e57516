import test from 'ava';
import { Counters } from '../../../src/core/counters.ts';
import { Links, NO_COUNTS, type Link, type LinkFigures } from '../../../src/core/links.ts';

function link(figures: Partial<LinkFigures>): Link {
  return { figures: { rttMs: 0, capacity: 0, bufferedMs: 0, counts: NO_COUNTS, ...figures } };
}

test('links are summed up, and stay so when they have gone; the worst of those that are there is known', (t) => {
  const links = new Links();
  t.is(links.worst, undefined);
  t.deepEqual(links.counts, NO_COUNTS);
  const first = link({ rttMs: 10, bufferedMs: 100, counts: { ...NO_COUNTS, packets: 5, lost: 1 } });
  const second = link({ rttMs: 30, capacity: 7, bufferedMs: 50, counts: { ...NO_COUNTS, packets: 6, belated: 2 } });
  const silent: Link = { figures: undefined };
  for (const one of [first, second, silent]) links.add(one);
  t.like(links, { soFar: 3, size: 3 });
  t.deepEqual(links.counts, { ...NO_COUNTS, packets: 11, lost: 1, belated: 2 });
  t.deepEqual({ ...links.worst }, { rttMs: 30, capacity: 7, bufferedMs: 100 });
  for (const one of [first, silent, first]) links.remove(one);
  t.like(links, { soFar: 3, size: 1 });
  t.deepEqual(links.counts, { ...NO_COUNTS, packets: 11, lost: 1, belated: 2 });
  t.like(links.worst, { rttMs: 30, capacity: 7, bufferedMs: 50 });
});

test('links of a stream are those of the levels above, each once', (t) => {
  const stream = new Counters();
  const publisher = new Counters(stream);
  const unlink = publisher.link('in', link({ counts: { ...NO_COUNTS, packets: 5 } }));
  t.is(stream.linksIn.size, 1);
  t.is(stream.linksOut.size, 0);
  unlink();
  unlink();
  t.like(stream.linksIn, { size: 0, soFar: 1 });
  t.is(stream.linksIn.counts.packets, 5);
});
