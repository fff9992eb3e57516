import { createHash } from 'node:crypto';
import test from 'ava';
import { Authorization } from '../../../../src/protocols/rtsp/authorization.ts';
import { CredentialCheck, readBasic } from '../../../../src/protocols/rtsp/credentials.ts';
import { interleave, InterleavedFrame, onChannel, packetAt } from '../../../../src/protocols/rtsp/interleaved.ts';
import { writeResponse } from '../../../../src/protocols/rtsp/message.ts';
import { readRequestUrl } from '../../../../src/protocols/rtsp/request-url.ts';
import { readTransportOffers } from '../../../../src/protocols/rtsp/transport-offer.ts';
import { writeBye } from '../../../../src/protocols/rtp/rtcp.ts';

test('a Transport field is read as its offers that can be met, in their order', (t) => {
  const offer = (kind: 'tcp' | 'udp', profile: string, pair: unknown, isRecord = false) => ({
    kind,
    profile,
    pair,
    isRecord,
  });
  t.deepEqual(readTransportOffers('RTP/AVP/TCP;unicast;interleaved=0-1'), [
    offer('tcp', 'RTP/AVP/TCP', [0, 1]),
  ] as never);
  t.deepEqual(
    readTransportOffers(
      'RTP/AVP;multicast;client_port=1-2, RTP/AVP/UDP;unicast;client_port=5000-5001;mode="PLAY",RTP/AVP/TCP',
    ),
    [offer('udp', 'RTP/AVP/UDP', [5000, 5001]), offer('tcp', 'RTP/AVP/TCP', undefined)] as never,
  );
  t.deepEqual(readTransportOffers('RTP/AVP;unicast;client_port=5000;mode=record'), [
    offer('udp', 'RTP/AVP', [5000, 5001], true),
  ] as never);
  for (const [field, pair] of [
    ['RTP/AVP/TCP;interleaved=255-256', undefined],
    ['RTP/AVP/TCP;interleaved=4-4', undefined],
    ['RTP/AVP;client_port=0-1', undefined],
    ['RTP/AVP;client_port=99999', undefined],
  ] as const)
    t.is(readTransportOffers(field)[0]?.pair, pair);
  for (const none of ['', 'MP2T/H2221/UDP', 'RTP/SAVP;unicast', 'RTP/AVP;multicast', ','.repeat(10_000)])
    t.deepEqual(readTransportOffers(none), []);
});

test('the URL of a request names application, stream, playlist and track, also where a track is appended to a query', (t) => {
  t.like(readRequestUrl('rtsp://live.example:8554/app/my%20stream/abr/trackID=1?a=b&c=d'), {
    host: 'live.example',
    app: 'app',
    stream: 'my stream',
    playlist: 'abr',
    track: 1,
    href: 'rtsp://live.example:8554/app/my%20stream/abr?a=b&c=d',
    base: 'rtsp://live.example:8554/app/my%20stream/abr/',
  });
  t.like(readRequestUrl('rtsp://[::1]/app/talk/?policy=x/y/trackID=0'), {
    host: '::1',
    stream: 'talk',
    track: 0,
    href: 'rtsp://[::1]/app/talk?policy=x/y',
  });
  t.like(readRequestUrl('RTSPS://anna:secret@host/app/talk'), { href: 'rtsps://host/app/talk', track: undefined });
  for (const none of [
    '*',
    '/app/talk',
    'http://a/app/talk',
    'rtsp://a/app',
    'rtsp://a/b/c/d/e',
    `rtsp://a/b/${'c'.repeat(5000)}`,
  ])
    t.is(readRequestUrl(none), undefined, none);
});

test('credentials that answer a challenge are those of a user, by every algorithm that is offered', (t) => {
  const passwordOf = (name: string) => (name === 'an"na' ? 'p:w' : undefined);
  for (const [user, password, expected] of [
    ['an"na', 'p:w', 'an"na'],
    ['an"na', 'wrong', undefined],
    ['eva', '', undefined],
  ] as const)
    for (const index of [0, 1, 2]) {
      const check = new CredentialCheck('Kiln');
      const client = new Authorization(user, password);
      t.true(client.take([check.challenges[index] as string]));
      const field = client.field('DESCRIBE', 'rtsp://host/app/talk') as string;
      t.is(check.userOf(field, 'DESCRIBE', passwordOf), expected);
      // those of another method, or another connection
      if (index < 2) t.is(check.userOf(field, 'PLAY', passwordOf), undefined);
      if (index < 2) t.is(new CredentialCheck('Kiln').userOf(field, 'DESCRIBE', passwordOf), undefined);
    }
});

test('Digest without qop is checked as RFC 2069 has it', (t) => {
  const check = new CredentialCheck('Kiln');
  const nonce = /nonce="([^"]+)"/.exec(check.challenges[1] as string)?.[1] ?? '';
  const md5 = (text: string) => createHash('md5').update(text).digest('hex');
  const response = md5(`${md5('anna:Kiln:pw')}:${nonce}:${md5('DESCRIBE:rtsp://a/b/c')}`);
  const field = `Digest username="anna", realm="Kiln", nonce="${nonce}", uri="rtsp://a/b/c", response="${response}"`;
  t.is(
    check.userOf(field, 'DESCRIBE', () => 'pw'),
    'anna',
  );
});

test('malformed credentials are of nobody', (t) => {
  const check = new CredentialCheck('Kiln');
  for (const field of [
    '',
    'Basic',
    'Basic !!!',
    'Basic YQ==',
    'Digest',
    'Digest a',
    'Digest algorithm=MD5',
    'Bearer x',
    'Digest '.repeat(9999),
  ])
    t.is(
      check.userOf(field, 'DESCRIBE', () => ''),
      undefined,
      field.slice(0, 20),
    );
  t.deepEqual(readBasic('basic YTpiOmM='), { user: 'a', password: 'b:c' });
});

test('interleaved packets of a frame are found again, on any channel', (t) => {
  const frame = new InterleavedFrame();
  const packets = [Buffer.alloc(3, 1), Buffer.alloc(1212, 2), Buffer.alloc(65_535, 3)];
  frame.begin(10);
  for (const packet of packets) frame.add(4, packet);
  const data = frame.end();
  t.deepEqual(data.subarray(0, 7), Buffer.of(0x24, 4, 0, 3, 1, 1, 1));
  for (const [channel, bytes] of [
    [4, data],
    [9, onChannel(data, 9)],
  ] as const) {
    const found: Buffer[] = [];
    for (let at = 0; at < bytes.length;) {
      t.is(bytes[at + 1], channel);
      const [start, end] = packetAt(bytes, at);
      found.push(bytes.subarray(start, end));
      at = end;
    }
    t.deepEqual(found, packets);
  }
  t.deepEqual(interleave(1, Buffer.of(7)), Buffer.of(0x24, 1, 0, 1, 7));
});

test('an answer has a field for each of several values', (t) => {
  t.is(
    writeResponse(401, 'Unauthorized', { A: ['1', '2'], B: undefined }),
    'RTSP/1.0 401 Unauthorized\r\nA: 1\r\nA: 2\r\n\r\n',
  );
});

test('the end of a source is an empty receiver report with BYE', (t) => {
  t.is(writeBye(0x01020304).toString('hex'), '80c900010102030481cb000101020304');
});
