import test from 'ava';
import Type from 'typebox';
import { readJson } from '../../../src/lib/read-json.ts';

const Names = Type.Object({ names: Type.Array(Type.String({ maxLength: 3 })), at: Type.Optional(Type.Integer()) });
const read = (text: string) => readJson(Names, Buffer.from(text));

test('JSON that matches its schema is read, with fields of later versions', (t) => {
  for (let times = 0; times < 2; times++) {
    t.deepEqual(read('{"names":["a"],"more":1}'), { names: ['a'], more: 1 } as never);
    t.deepEqual(read('{"names":[],"at":1}'), { names: [], at: 1 });
  }
});

test('other JSON, and what is none, is undefined', (t) => {
  for (const text of ['{"names":["long"]}', '{"names":1}', '{}', 'null', '', '{"names":[]', '{"names":[],"at":0.5}'])
    t.is(read(text), undefined, text);
});

test('schemas are told apart', (t) => {
  t.is(readJson(Type.Null(), Buffer.from('{"names":[]}')), undefined);
  t.is(readJson(Type.Null(), Buffer.from('null')), null);
  t.deepEqual(read('{"names":[]}'), { names: [] });
});
