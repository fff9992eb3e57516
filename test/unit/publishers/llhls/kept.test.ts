import test from 'ava';
import { nextOf, readKept, toKept } from '../../../../src/publishers/llhls/kept.ts';

const PROGRESS = { msn: 7, discontinuities: 2, inits: new Map([[0, 1], [1, 3]]) };

test('what is kept is small JSON, and read again says where to go on', (t) => {
  const kept = toKept('AbCdEfGh', PROGRESS, true, ['x']);
  const read = readKept(JSON.parse(JSON.stringify(kept)));
  t.deepEqual(read, kept);
  if (read === undefined) return t.fail();
  t.deepEqual(nextOf(read), { msn: 8, past: { discontinuities: 2, inits: new Map([[0, 1], [1, 3]]), gaps: 0 } });
  t.true(JSON.stringify(toKept('AbCdEfGh', PROGRESS, true, Array.from({ length: 9999 }, () => 'x'.repeat(128)))).length < 10_000);
});

test('a node that died may have been ahead of what it kept', (t) => {
  const kept = toKept('AbCdEfGh', PROGRESS, false, []);
  if (kept === undefined) return t.fail();
  const { msn, past } = nextOf(kept);
  t.true(msn > PROGRESS.msn + 1);
  t.true((past.inits.get(0) ?? 0) > 1);
  t.is(msn - past.gaps, PROGRESS.msn, 'players find the way from what they know');
});

test('a stream that has not begun has nothing to continue', (t) => {
  t.is(toKept('AbCdEfGh', { msn: -1, discontinuities: -1, inits: new Map() }, false, []), undefined);
});

test('what another version may have left is not believed', (t) => {
  const kept = toKept('AbCdEfGh', PROGRESS, true, []);
  for (const wrong of [
    undefined, null, 'text', [], {}, { ...kept, run: '../../evil' }, { ...kept, run: 7 }, { ...kept, msn: -1 }, { ...kept, msn: 1e300 },
    { ...kept, msn: '7' }, { ...kept, inits: [[0]] }, { ...kept, inits: { 0: 1 } }, { ...kept, discontinuities: undefined }, { ...kept, kicked: [7] },
  ]) t.is(readKept(wrong), undefined, JSON.stringify(wrong));
});
