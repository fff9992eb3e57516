import test from 'ava';
import { denied, roomOf } from '../../lint/words.ts';

const words = (text: string, room = 'src/core') => denied(room, text).map(({ word, line }) => `${line} ${word}`);

test('words count whole, in any case and as parts of names', (t) => {
  t.deepEqual(words('told\nconst soundTrack = isToldOf(DOOR);\n// a doorway, soundly untold'), [
    '1 told',
    '2 sound',
    '2 Told',
    '2 DOOR',
  ]);
});

test('terms of standards are no denied words', (t) => {
  t.deepEqual(words('the picture order count of a reference picture, by Picture Loss Indication'), []);
  t.deepEqual(words('the picture id, PICTURE_ID and pictureId of VP8'), []);
  t.deepEqual(words('a picture'), ['1 picture']);
  t.deepEqual(words('a picture with sound', 'src/codecs'), ['1 sound']);
});

test('doc comments begin with a verb or a noun', (t) => {
  t.deepEqual(words('/** Who asks. */\n/**\n * What is asked.\n */\n/** The answer; what it is. */\n// What now'), [
    '1 Who',
    '2 What',
  ]);
  t.deepEqual(words('/** @returns what was sent */'), []);
});

test('files count with their room', (t) => {
  t.is(roomOf('src/access/policy/check.ts'), 'src/access');
  t.is(roomOf('src/main.ts'), 'src');
  t.is(roomOf('cluster/redis/leases.ts'), 'cluster');
  t.is(roomOf('docs/play.md'), 'docs');
});
