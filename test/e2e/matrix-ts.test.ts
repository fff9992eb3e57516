import test from 'ava';
import { Matrix } from '../support/matrix/matrix.ts';
import { EVERYDAY, nameOf } from '../support/matrix/table.ts';

let matrix: Matrix;
test.before(async () => {
  matrix = await Matrix.open(6);
});
test.after.always(() => matrix?.close());

for (const cell of EVERYDAY.filter(({ publisher }) => /^(SRT|MPEG-TS)/.test(publisher))) {
  test(`${nameOf(cell)}: every player decodes it, in step`, (t) => matrix.runInTurn(t, cell));
}
