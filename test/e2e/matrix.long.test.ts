import test from 'ava';
import { Matrix } from '../support/matrix/matrix.ts';
import { EVERYDAY, nameOf } from '../support/matrix/table.ts';

let matrix: Matrix;
test.before(async () => {
  matrix = await Matrix.open(EVERYDAY.filter(({ publisher }) => publisher.startsWith('MPEG-TS')).length);
});
test.after.always(() => matrix?.close());

for (const cell of EVERYDAY) {
  test(`${nameOf(cell)}: every player decodes it, in step`, (t) => matrix.runInTurn(t, cell));
}
