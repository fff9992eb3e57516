import test from 'ava';
import { RtpReceiver } from '../../../../../src/protocols/rtp/receive/receiver.ts';
import { RtpError } from '../../../../../src/protocols/rtp/receive/error.ts';
import { parseRtcp } from '../../../../../src/protocols/rtp/receive/rtcp.ts';
import { joinNals } from '../../../../../src/codecs/nal.ts';
import { seeded } from '../../../codecs/vectors.ts';
import { sent, videoOf } from './support.ts';

const FORMATS = [
  ['H264', {}],
  ['H265', {}],
  ['VP8', {}],
  ['VP9', {}],
  ['AV1', {}],
  ['OPUS', {}],
  ['MP2T', {}],
  ['MPA', {}],
  ['MPEG4-GENERIC', { mode: 'AAC-hbr', config: '1190' }],
  ['MPEG4-GENERIC', { mode: 'AAC-lbr', auxiliarydatasizelength: '7', ctsdeltalength: '9' }],
  ['MP4A-LATM', {}],
  ['MP4A-LATM', { cpresent: '0', config: '400023203fc0' }],
] as const;

test('random payloads, in any order, give frames or damage and nothing else', (t) => {
  const random = seeded(11);
  for (const [encoding, parameters] of FORMATS) {
    let told = 0;
    let bytesIn = 0;
    let bytesOut = 0;
    const receiver = new RtpReceiver({ encoding, clockRate: 90_000, parameters }, 20, {
      frame: (data) => {
        told++;
        bytesOut += data.length;
      },
      damaged: () => told++,
      configuration: () => {},
      lost: () => {},
      restarted: () => {},
    });
    for (let i = 0; i < 4000; i++) {
      const payload = Buffer.from(Array.from({ length: Math.floor(random() * 60) }, () => Math.floor(random() * 256)));
      bytesIn += payload.length;
      const sequence = (i + Math.floor(random() * 5)) & 0xffff;
      const packet = {
        payloadType: 96,
        marker: random() < 0.3,
        sequence,
        timestamp: Math.floor(i / 4) * 3000,
        ssrc: 1,
        payload,
      };
      receiver.push(packet, i);
    }
    t.true(told > 100, encoding);
    t.true(bytesOut < 2 * bytesIn, encoding);
  }
});

test('only whole frames come out of RTP that is cut, twisted, lost and doubled', (t) => {
  const random = seeded(12);
  const frames = Array.from({ length: 300 }, (_, i) => {
    const nal = Buffer.alloc(20 + Math.floor(random() * 5000), i);
    nal[0] = i % 30 === 0 ? 0x65 : 0x41;
    nal[1] = 0x9a;
    return { track: videoOf('H264'), key: false, data: joinNals([nal]) };
  });
  const wanted = new Set(frames.map(({ data }) => data.toString('latin1')));
  let whole = 0;
  let damaged = 0;
  let lost = 0;
  const receiver = new RtpReceiver({ encoding: 'H264', clockRate: 90_000, parameters: {} }, 30, {
    frame: (data) => {
      whole++;
      t.true(wanted.has(data.toString('latin1')));
    },
    damaged: () => damaged++,
    configuration: () => t.fail(),
    lost: (packets) => (lost += packets),
    restarted: () => t.fail(),
  });
  const packets = sent(frames);
  let missing = 0;
  for (let i = packets.length - 1; i > 0; i--) {
    const other = Math.max(0, i - Math.floor(random() * 4));
    const [one, two] = [packets[i], packets[other]];
    if (one === undefined || two === undefined) continue;
    packets[i] = two;
    packets[other] = one;
  }
  packets.forEach((one, now) => {
    if (random() < 0.02) return void missing++;
    receiver.push({ ...one, payload: Buffer.from(one.payload) }, now);
    if (random() < 0.05) receiver.push(one, now);
  });
  receiver.tick(Infinity);
  t.true(whole > 150 && whole < 300, `${whole} whole frames`);
  t.true(damaged > 0);
  t.is(lost, missing);
});

test('random RTCP is read or refused', (t) => {
  const random = seeded(13);
  for (let i = 0; i < 5000; i++) {
    const data = Buffer.from(Array.from({ length: Math.floor(random() * 80) }, () => Math.floor(random() * 256)));
    if (data.length > 4 && random() < 0.9) {
      data[0] = 0x80 | ((data[0] as number) & 0x1f);
      data[1] = 200 + Math.floor(random() * 6);
      data.writeUInt16BE(Math.floor(random() * 12), 2);
    }
    try {
      const { senders, byes } = parseRtcp(data);
      t.true(senders.length + byes.length < 32 * 20);
    } catch (error) {
      t.true(error instanceof RtpError, String(error));
    }
  }
});
