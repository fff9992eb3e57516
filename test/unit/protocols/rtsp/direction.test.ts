import test from 'ava';
import { sentByServer } from '../../../../src/protocols/rtsp/direction.ts';

/** Sections as `video recvonly`, and the places of those that the server sends in. */
const CASES: readonly (readonly [what: string, sections: readonly string[], sent: readonly number[]])[] = [
  ['no directions', ['video', 'audio'], [0, 1]],
  ["the client's side", ['video recvonly', 'audio recvonly', 'audio sendonly'], [0, 1]],
  ["the server's side", ['video sendonly', 'audio recvonly'], [0]],
  ["the server's side, with audio", ['video sendonly', 'audio sendonly', 'audio recvonly'], [0, 1]],
  ["the server's side, audio without direction", ['video sendonly', 'audio'], [0, 1]],
  ["the server's side for all", ['video sendonly', 'audio sendonly'], [0, 1]],
  ['a back channel marked alone', ['video', 'audio sendonly'], [0]],
  ['a back channel beside audio', ['video', 'audio', 'audio sendonly'], [0, 1]],
  ['audio marked alone', ['video', 'audio recvonly'], [0, 1]],
  ['both ways', ['video sendrecv', 'audio sendrecv'], [0, 1]],
  ['video marked both ways by two sections', ['video recvonly', 'video sendonly', 'audio sendonly'], [0, 1]],
  ['audio alone', ['audio sendonly'], [0]],
  ['audio alone, and a back channel', ['audio recvonly', 'audio sendonly'], [0]],
  ['audio and metadata', ['audio sendonly', 'application recvonly'], [0, 1]],
  ['nothing goes on', ['video inactive', 'audio inactive'], []],
  ['a back channel of what is off', ['video inactive', 'audio recvonly', 'audio sendonly'], [1]],
];

for (const [what, texts, expected] of CASES) {
  test(`sections are found in which the server sends: ${what}`, (t) => {
    const sections = texts.map((text) => {
      const [type = '', direction] = text.split(' ');
      return { type, direction };
    });
    t.deepEqual(
      sentByServer(sections).map((section) => sections.indexOf(section)),
      expected,
    );
  });
}
