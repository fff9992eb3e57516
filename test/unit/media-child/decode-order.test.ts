import test from 'ava';
import { DecodeOrder } from '../../../src/media-child/decode-order.ts';

/** Presentation times of groups of frames in decode order, of which the first is shown after so many others. */
function times(from: number, groups: number, reordered: number, step: number): number[] {
  const found = [from];
  for (let group = 0; group < groups; group++) {
    const first = from + step * (1 + group * (reordered + 1));
    found.push(first + reordered * step);
    for (let index = 0; index < reordered; index++) found.push(first + index * step);
  }
  return found;
}

for (const [before, after] of [
  [0, 2],
  [2, 0],
  [1, 4],
  [4, 1],
] as const) {
  test(`decode times grow where ${before} reordered frames become ${after}`, (t) => {
    const out: { pts: number; dts: number }[] = [];
    const order = new DecodeOrder<{ pts: number; dts: number }>(before, (frame) => out.push({ ...frame }));
    const all = [...times(0, 10, before, 40), ...times(40 * (1 + 10 * (before + 1)), 10, after, 40)];
    for (const [index, pts] of all.entries()) {
      if (index === 1 + 10 * (before + 1)) order.restart(after);
      order.push({ pts, dts: pts });
    }
    order.end();
    t.deepEqual(
      out.map(({ pts }) => pts),
      all,
    );
    for (const [index, { pts, dts }] of out.entries()) {
      t.true(pts >= dts, `${pts} ${dts}`);
      if (index > 0) t.true(dts > (out[index - 1]?.dts ?? 0), `${out[index - 1]?.dts} -> ${dts}`);
    }
  });
}
