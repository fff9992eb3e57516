import test from 'ava';
import Type from 'typebox';
import { readJson } from '../../../src/origins/read-json.ts';

test('what another node sends is what was asked for, or nothing', (t) => {
  const schema = Type.Object({ names: Type.Array(Type.String()) });
  t.deepEqual(readJson(Buffer.from('{"names":["a"],"more":1}'), schema), { names: ['a'], more: 1 } as never);
  for (const text of ['', '{', 'null', '[]', '{}', '{"names":[1]}', '<html>', '\u0000']) t.is(readJson(Buffer.from(text), schema), undefined, text);
});
