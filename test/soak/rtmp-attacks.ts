import type { AmfValue } from '../../src/protocols/rtmp/amf-value.ts';
import { encodeAmf0 } from '../../src/protocols/rtmp/amf0.ts';
import { ChunkWriter } from '../../src/protocols/rtmp/chunk-writer.ts';
import { encodeCommand } from '../../src/protocols/rtmp/command.ts';
import { HANDSHAKE_BYTES } from '../../src/protocols/rtmp/handshake.ts';
import { encodeNumber, MessageType } from '../../src/protocols/rtmp/message.ts';
import type { VideoCodec } from '../../src/core/track.ts';
import { buildAudioTag, buildVideoTag } from '../support/rtmp/flv-build.ts';
import { aac, h264, type FlvMedia } from '../support/rtmp/flv-media.ts';
import { OBS_PROPERTIES } from '../support/rtmp/rtmp-client.ts';
import { box, samples, vector } from '../unit/codecs/vectors.ts';
import { mutate } from './mutate.ts';
import type { Random } from './random.ts';

const HANDSHAKE = 1 + 2 * HANDSHAKE_BYTES;
const NAMES = 16;
const FRAMES = 40;
const FRAME_MS = 40;
const ANY_TYPE = [...Object.values(MessageType), 0, 7, 10, 19, 99];

function extended(codec: VideoCodec, file: string, configBox: string): FlvMedia {
  const mp4 = vector(file);
  return {
    config: buildVideoTag({ codec, packet: 'config', key: true, data: box(mp4, configBox) }),
    frames: samples(mp4).map((data, i) => buildVideoTag({ codec, packet: 'frame', key: i % 2 === 0, data })),
  };
}

const PICTURES = [
  h264(),
  h264('h264-high-bframes.mp4'),
  extended('H265', 'h265-main.mp4', 'hvcC'),
  extended('AV1', 'av1-svt.mp4', 'av1C'),
  extended('VP9', 'vp9-profile0.mp4', 'vpcC'),
];
const OPUS_HEAD = Buffer.concat([Buffer.from('OpusHead'), Buffer.from('0102000080bb0000000000', 'hex')]);
const OPUS: FlvMedia = {
  config: buildAudioTag({ codec: 'OPUS', packet: 'config', data: OPUS_HEAD }),
  frames: [buildAudioTag({ codec: 'OPUS', packet: 'frame', data: Buffer.alloc(80, 0xfc) })],
};
const SOUNDS = [aac(), aac(), OPUS];

/** All bytes that a publisher sends, or with some odds a wild mixture of valid messages. */
function session(random: Random): Buffer {
  const writer = new ChunkWriter();
  const [picture, sound] = [random.pick(PICTURES), random.pick(SOUNDS)];
  const command = (name: string, transaction: number, ...rest: AmfValue[]) =>
    writer.message(3, MessageType.CommandAmf0, 0, 0, encodeCommand(name, transaction, ...rest));
  const out: Buffer[] = [
    Buffer.of(3),
    random.bytes(16),
    Buffer.alloc(2 * HANDSHAKE_BYTES - 16, random.below(256)),
    ...command('connect', 1, { app: 'app', tcUrl: 'rtmp://127.0.0.1/app', ...OBS_PROPERTIES }),
    ...command('createStream', 2, null),
    ...command('publish', 3, null, `attack${random.below(NAMES)}`, 'live'),
    ...writer.setChunkSize(random.pick([128, 4096, 60_000])),
    ...writer.message(
      4,
      MessageType.DataAmf0,
      1,
      0,
      encodeAmf0('@setDataFrame', 'onMetaData', { videocodecid: 7, audiocodecid: 10 }),
    ),
    ...writer.message(6, MessageType.Video, 1, 0, picture.config),
    ...writer.message(4, MessageType.Audio, 1, 0, sound.config),
  ];
  const wild = random.chance(0.25);
  for (let i = 0; i < FRAMES; i++) {
    const video = random.chance(0.5);
    const medium = video ? picture : sound;
    const body = wild && random.chance(0.1) ? medium.config : random.pick(medium.frames);
    const type = wild && random.chance(0.1) ? random.pick(ANY_TYPE) : video ? MessageType.Video : MessageType.Audio;
    const time = wild && random.chance(0.2) ? random.below(2 ** 32) : i * FRAME_MS;
    out.push(...writer.message(wild ? 2 + random.below(60) : video ? 6 : 4, type, 1, time, body));
  }
  if (random.chance(0.5)) out.push(...command('deleteStream', 4, null, 1));
  if (wild) out.push(...writer.message(2, MessageType.SetChunkSize, 0, 0, encodeNumber(random.below(2 ** 32))));
  return Buffer.concat(out);
}

const PLAYED = ['live', 'live?gop=0', 'live/llhls', 'live/none', 'none', '', 'attack1'];

/** All bytes that a player sends: commands in any order, which ask for streams that are there or not. */
function playSession(random: Random): Buffer {
  const writer = new ChunkWriter();
  const command = (name: string, streamId: number, ...rest: AmfValue[]) =>
    writer.message(3, MessageType.CommandAmf0, streamId, 0, encodeCommand(name, random.below(3), ...rest));
  const commands: readonly (() => Buffer[])[] = [
    () => command('createStream', 0, null),
    () => command('play', 1, null, random.pick(PLAYED), random.pick([-2000, -1, 0, 1e9])),
    () => command('pause', 1, null, random.chance(0.5), 0),
    () => command('seek', 1, null, random.below(100_000)),
    () => command('receiveVideo', 1, null, random.chance(0.5)),
    () => command('receiveAudio', 1, null, random.chance(0.5)),
    () => command('getStreamLength', 0, null, 'live'),
    () => command('FCSubscribe', 0, null, 'live'),
    () => command('closeStream', 1, null),
    () => command('deleteStream', 0, null, random.below(3)),
    () => command('publish', 1, null, 'attack0', 'live'),
    () => writer.message(2, MessageType.UserControl, 0, 0, random.bytes(random.below(12))),
    () => writer.message(6, MessageType.Video, 1, 0, random.bytes(random.below(60))),
  ];
  const properties = random.chance(0.5) ? {} : { fourCcList: ['*'], capsEx: random.below(16) };
  const connect = { app: 'app', tcUrl: 'rtmp://127.0.0.1/app', ...properties };
  return Buffer.concat([
    Buffer.of(3),
    random.bytes(16),
    Buffer.alloc(2 * HANDSHAKE_BYTES - 16, random.below(256)),
    ...command('connect', 0, connect),
    ...command('createStream', 0, null),
    ...command('play', 1, null, random.pick(PLAYED), -2000),
    ...Array.from({ length: random.below(20) }, () => random.pick(commands)()).flat(),
  ]);
}

/** A player's bytes, half of them broken. */
export function rtmpPlayAttack(random: Random): Buffer {
  const bytes = playSession(random);
  return random.chance(0.5) ? bytes : mutate(bytes, random, playSession(random), HANDSHAKE);
}

/** A publisher's bytes, mostly broken. */
export function rtmpAttack(random: Random): Buffer {
  const bytes = session(random);
  if (random.chance(0.1)) return bytes;
  return mutate(bytes, random, session(random), random.chance(0.85) ? HANDSHAKE : 0);
}
