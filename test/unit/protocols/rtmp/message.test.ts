import test from 'ava';
import { decodeCommand, deliverData, encodeCommand, statusInfo } from '../../../../src/protocols/rtmp/command.ts';
import { RtmpError } from '../../../../src/protocols/rtmp/error.ts';
import {
  decodeNumber,
  encodeNumber,
  encodePeerBandwidth,
  encodeUserControl,
  MessageType,
  splitAggregate,
  UserControl,
  type RtmpMessage,
} from '../../../../src/protocols/rtmp/message.ts';
import { encodeAmf0 } from '../../../../src/protocols/rtmp/amf0.ts';
import type { AmfValue } from '../../../../src/protocols/rtmp/amf-value.ts';

/** Values of a data message. */
function dataOf(of: RtmpMessage): AmfValue[] | undefined {
  let values: AmfValue[] | undefined;
  deliverData(of, {
    data: (read) => (values = read),
    malformedData: (error) => {
      throw error;
    },
  });
  return values;
}

const hex = (text: string) => Buffer.from(text.replaceAll(' ', ''), 'hex');
const message = (type: number, payload: Buffer, timestamp = 0) => ({ type, streamId: 1, timestamp, payload });

test('RTMP control messages are read as written', (t) => {
  t.deepEqual(encodeNumber(2_500_000), hex('002625a0'));
  t.is(decodeNumber(message(MessageType.WindowAckSize, hex('002625a0'))), 2_500_000);
  t.deepEqual(encodePeerBandwidth(2_500_000), hex('002625a0 02'));
  t.deepEqual(encodeUserControl(UserControl.PingResponse, 0x01020304), hex('0007 01020304'));
  t.throws(() => decodeNumber(message(MessageType.WindowAckSize, hex('0026'))), { instanceOf: RtmpError });
});

test('an aggregate gives its messages with times from its own', (t) => {
  const payload = hex('08 000002 000064 00 000000 aabb 0000000d 09 000001 00008c 00 000000 cc 0000000c');
  t.deepEqual(
    [...splitAggregate(message(MessageType.Aggregate, payload, 1000))],
    [
      { type: 8, streamId: 1, timestamp: 1000, payload: hex('aabb') },
      { type: 9, streamId: 1, timestamp: 1040, payload: hex('cc') },
    ],
  );
});

test('an aggregate without its last back pointer is whole all the same', (t) => {
  const payload = hex('08 000001 000000 01 000000 aa');
  t.deepEqual(
    [...splitAggregate(message(MessageType.Aggregate, payload, 7))].map(({ timestamp }) => timestamp),
    [7],
  );
});

test('malformed aggregates are refused', (t) => {
  for (const payload of [hex('08 0000'), hex('08 0000ff 000000 00 000000 aa'), hex('16 000000 000000 00 000000')]) {
    t.throws(() => [...splitAggregate(message(MessageType.Aggregate, payload))], { instanceOf: RtmpError });
  }
});

test('an RTMP command is read as written', (t) => {
  const body = encodeCommand('publish', 5, null, 'live?key=1', 'live');
  t.deepEqual(body, hex('02 0007 7075626c697368 00 4014000000000000 05 02 000a 6c6976653f6b65793d31 02 0004 6c697665'));
  const command = decodeCommand(message(MessageType.CommandAmf0, body));
  t.like(command, { name: 'publish', transactionId: 5, args: ['live?key=1', 'live'] });
  t.deepEqual(Object.keys(command.object), []);
});

test('a command of AMF3 type, with and without AMF3 values', (t) => {
  const plain = Buffer.concat([Buffer.of(0), encodeCommand('createStream', 2, null)]);
  t.like(decodeCommand(message(MessageType.CommandAmf3, plain)), { name: 'createStream', transactionId: 2 });
  const mixed = Buffer.concat([Buffer.of(0), encodeAmf0('connect', 1), hex('11 0a 0b 01 07 617070 06 09 6c697665 01')]);
  const command = decodeCommand(message(MessageType.CommandAmf3, mixed));
  t.is(command.object.app, 'live');
});

test('a body that is no command is refused', (t) => {
  t.throws(() => decodeCommand(message(MessageType.CommandAmf0, encodeAmf0(1, 2))), { instanceOf: RtmpError });
  t.throws(() => decodeCommand(message(MessageType.CommandAmf0, Buffer.alloc(0))), { instanceOf: RtmpError });
});

test('data messages of both types', (t) => {
  const body = encodeAmf0('@setDataFrame', 'onMetaData');
  t.deepEqual(dataOf(message(MessageType.DataAmf0, body)), ['@setDataFrame', 'onMetaData']);
  t.deepEqual(dataOf(message(MessageType.DataAmf3, Buffer.concat([Buffer.of(0), body]))), [
    '@setDataFrame',
    'onMetaData',
  ]);
});

test('RTMP status information is read', (t) => {
  t.deepEqual(statusInfo('error', 'NetStream.Publish.BadName', 'taken'), {
    level: 'error',
    code: 'NetStream.Publish.BadName',
    description: 'taken',
  });
});
