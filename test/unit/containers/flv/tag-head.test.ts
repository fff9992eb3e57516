import test from 'ava';
import { audioParts, readAudioPart } from '../../../../src/containers/flv/audio.ts';
import { FlvError } from '../../../../src/containers/flv/error.ts';
import { audioTagHead, videoTagHead, type TagContent } from '../../../../src/containers/flv/tag-head.ts';
import { readVideoPart, videoParts } from '../../../../src/containers/flv/video.ts';
import type { AudioCodec, VideoCodec } from '../../../../src/core/track.ts';

const VIDEO: readonly (readonly [string, VideoCodec, TagContent, boolean, number])[] = [
  ['1700000000', 'H264', 'config', true, 0],
  ['1701000000', 'H264', 'frame', true, 0],
  ['2701000050', 'H264', 'frame', false, 80],
  ['2701ffffd8', 'H264', 'frame', false, -40],
  ['9068766331', 'H265', 'config', true, 0],
  ['a168766331000021', 'H265', 'frame', false, 33],
  ['9061763031', 'AV1', 'config', true, 0],
  ['a161763031', 'AV1', 'frame', false, 0],
  ['9176703039', 'VP9', 'frame', true, 0],
];

for (const [bytes, codec, content, key, compositionTime] of VIDEO) {
  test(`a ${content} of ${codec} is written as ${bytes}, and read again`, (t) => {
    const head = videoTagHead(codec, content, key, compositionTime);
    t.is(head.toString('hex'), bytes);
    const data = Buffer.from('aabb', 'hex');
    const [part] = videoParts(Buffer.concat([head, data]));
    t.deepEqual(part && readVideoPart(part), { codec, packet: content, compositionTime, nanos: 0, data });
  });
}

const AUDIO: readonly (readonly [string, AudioCodec, TagContent])[] = [
  ['af00', 'AAC', 'config'],
  ['af01', 'AAC', 'frame'],
  ['904f707573', 'OPUS', 'config'],
  ['914f707573', 'OPUS', 'frame'],
  ['2f', 'MP3', 'frame'],
  ['9161632d33', 'AC3', 'frame'],
  ['9165632d33', 'EAC3', 'frame'],
  ['90664c6143', 'FLAC', 'config'],
  ['91664c6143', 'FLAC', 'frame'],
];

for (const [bytes, codec, content] of AUDIO) {
  test(`a ${content} of ${codec} is written as ${bytes}, and read again`, (t) => {
    const head = audioTagHead(codec, content);
    t.is(head.toString('hex'), bytes);
    const data = Buffer.from('aabb', 'hex');
    const [part] = audioParts(Buffer.concat([head, data]));
    t.deepEqual(part && readAudioPart(part), { codec, packet: content, nanos: 0, data });
  });
}

test('a codec that RTMP has no name for is refused', (t) => {
  t.throws(() => audioTagHead('MP2', 'frame'), { instanceOf: FlvError });
});

const FURTHER: readonly (readonly [string, Buffer, object])[] = [
  ['96006176633103', videoTagHead('H264', 'config', true, 0, 3), { trackId: 3, packetType: 0, fourCc: 'avc1' }],
  ['a6016176633103000050', videoTagHead('H264', 'frame', false, 80, 3), { trackId: 3, packetType: 1, fourCc: 'avc1' }],
  ['96016176303101', videoTagHead('AV1', 'frame', true, 0, 1), { trackId: 1, packetType: 1, fourCc: 'av01' }],
];

for (const [bytes, head, part] of FURTHER) {
  test(`a tag of a further video track is written as ${bytes}, and read again`, (t) => {
    t.is(head.toString('hex'), bytes);
    t.like([...videoParts(head)][0], part);
  });
}

test('a tag of a further audio track is written, and read again', (t) => {
  const head = audioTagHead('AAC', 'frame', 2);
  t.is(head.toString('hex'), '95016d70346102');
  t.like([...audioParts(head)][0], { trackId: 2, packetType: 1, fourCc: 'mp4a' });
});
