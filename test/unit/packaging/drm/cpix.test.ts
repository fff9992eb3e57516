import test from 'ava';
import { CpixError, readCpixAnswer } from '../../../../src/packaging/drm/cpix-answer.ts';
import { cpixRequest, keyRequest, type KeyRequest } from '../../../../src/packaging/drm/cpix-request.ts';
import { keyAttributes, sessionAttributes } from '../../../../src/packaging/drm/key-tags.ts';
import {
  answerOf,
  FAIRPLAY_ID,
  keyOfId,
  PLAYREADY_ID,
  psshOf,
  WIDEVINE_ID,
  type AnswerChanges,
} from '../../../support/drm/key-server.ts';

const base64 = (text: string | Buffer): string => Buffer.from(text).toString('base64');
const asked = (facts: Partial<KeyRequest> = {}): KeyRequest =>
  keyRequest({ contentId: 'default_app_one', period: 0, scheme: 'cbcs', systems: ['Widevine'], ...facts });
const uuidOf = ({ keyId }: KeyRequest): string =>
  keyId.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');

function question(request: KeyRequest) {
  const ids = { Widevine: WIDEVINE_ID, PlayReady: PLAYREADY_ID, FairPlay: FAIRPLAY_ID };
  return {
    ...{ headers: {}, body: '', index: undefined, contentId: request.contentId, scheme: request.scheme },
    kid: uuidOf(request),
    iv: base64(request.iv),
    systemIds: request.systems.map((system) => ids[system]),
  };
}

function answered(request = asked(), changes: AnswerChanges = {}, edit = (text: string): string => text) {
  return readCpixAnswer(Buffer.from(edit(answerOf(question(request), changes))), request);
}

test('a request asks for one key for all tracks, and for each key system', (t) => {
  const request = asked({ contentId: 'a"<&>_b', systems: ['Widevine', 'FairPlay'] });
  const kid = uuidOf(request);
  t.regex(kid, /^.{8}-.{4}-8.{3}-[89ab].{3}-.{12}$/);
  const tags =
    '<cpix:HLSSignalingData playlist="media"></cpix:HLSSignalingData><cpix:HLSSignalingData playlist="master"></cpix:HLSSignalingData>';
  t.is(
    cpixRequest(request),
    `<?xml version="1.0" encoding="UTF-8"?>
<cpix:CPIX contentId="a&quot;&lt;&amp;&gt;_b" version="2.3" xmlns:cpix="urn:dashif:org:cpix" xmlns:pskc="urn:ietf:params:xml:ns:keyprov:pskc">` +
      `<cpix:ContentKeyList><cpix:ContentKey kid="${kid}" commonEncryptionScheme="cbcs" explicitIV="${base64(request.iv)}"></cpix:ContentKey></cpix:ContentKeyList>` +
      `<cpix:DRMSystemList><cpix:DRMSystem kid="${kid}" systemId="${WIDEVINE_ID}"><cpix:PSSH></cpix:PSSH>${tags}</cpix:DRMSystem>` +
      `<cpix:DRMSystem kid="${kid}" systemId="${FAIRPLAY_ID}">${tags}</cpix:DRMSystem></cpix:DRMSystemList>` +
      `<cpix:ContentKeyUsageRuleList><cpix:ContentKeyUsageRule kid="${kid}" intendedTrackType="ALL">` +
      '<cpix:VideoFilter></cpix:VideoFilter><cpix:AudioFilter></cpix:AudioFilter></cpix:ContentKeyUsageRule></cpix:ContentKeyUsageRuleList></cpix:CPIX>',
  );
});

test('a further period has a KeyId of its own, the same on every node', (t) => {
  const [first, second] = [asked(), asked({ period: 7 })];
  t.notDeepEqual(first.keyId, second.keyId);
  t.deepEqual(asked({ period: 7 }), second);
  t.notDeepEqual(asked({ contentId: 'other' }).keyId, first.keyId);
  const kid = uuidOf(second);
  const text = cpixRequest(second);
  t.true(
    text.includes(
      `</cpix:DRMSystemList><cpix:ContentKeyPeriodList><cpix:ContentKeyPeriod id="keyPeriod_${kid}" index="7"></cpix:ContentKeyPeriod></cpix:ContentKeyPeriodList>`,
    ),
    text,
  );
  t.true(
    text.includes(
      `intendedTrackType="ALL"><cpix:KeyPeriodFilter periodId="keyPeriod_${kid}"></cpix:KeyPeriodFilter><cpix:VideoFilter>`,
    ),
  );
});

test('an answer with the key, boxes of two key systems, and the tags that the server chose for a third', (t) => {
  const request = asked({ systems: ['Widevine', 'PlayReady', 'FairPlay'] });
  const kid = uuidOf(request);
  const key = answered(request);
  t.like(key, { scheme: 'cbcs', keyId: request.keyId, key: keyOfId(kid), iv: request.iv });
  t.deepEqual(
    key.pssh.map((box) => box.toString('hex', 12, 28)),
    [WIDEVINE_ID, PLAYREADY_ID].map((id) => id.replaceAll('-', '')),
  );
  const fairPlay = `METHOD=SAMPLE-AES,URI="skd://${kid}",KEYFORMAT="com.apple.streamingkeydelivery",KEYFORMATVERSIONS="1"`;
  const [widevine = '', playReady = '', last] = keyAttributes(key);
  t.regex(widevine, /^METHOD=SAMPLE-AES,URI="data:text\/plain;base64,.*KEYFORMAT="urn:uuid:edef8ba9-/);
  t.regex(playReady, /KEYFORMAT="com\.microsoft\.playready"/);
  t.is(last, fairPlay);
  t.deepEqual(sessionAttributes(key), keyAttributes(key));
});

test('tags for master playlists may differ, and further attributes stay', (t) => {
  const line = (tag: string, more: string): string =>
    base64(`#${tag}:KEYFORMAT="urn:uuid:${WIDEVINE_ID}",METHOD=SAMPLE-AES,URI="data:text/plain;base64,AA=="${more}\n`);
  const system = () =>
    `<cpix:HLSSignalingData>${line('EXT-X-KEY', ',X-A="b,c"')}</cpix:HLSSignalingData>` +
    `<cpix:HLSSignalingData playlist="master">\n ${line('EXT-X-SESSION-KEY', '')} \n</cpix:HLSSignalingData>`;
  const key = answered(asked(), { system });
  const both = `KEYFORMAT="urn:uuid:${WIDEVINE_ID}",METHOD=SAMPLE-AES,URI="data:text/plain;base64,AA=="`;
  t.deepEqual(keyAttributes(key), [`${both},X-A="b,c"`]);
  t.deepEqual(sessionAttributes(key), [both]);
  t.deepEqual(key.pssh, []);
});

test('FairPlay by URIExtXKey, as SPEKE v1 has it, and without prefixes or explicitIV', (t) => {
  const request = asked({ systems: ['FairPlay'] });
  const system = () => `<cpix:URIExtXKey>${base64('skd://content')}</cpix:URIExtXKey>`;
  const key = answered(request, { system }, (text) =>
    text
      .replaceAll(/cpix:|pskc:/g, '')
      .replace(/ explicitIV="[^"]+"/, '')
      .replace(/kid="([^"]+)"/g, (kid) => kid.toUpperCase().replace('KID', 'kid')),
  );
  t.is(keyAttributes(key)[0]?.includes('URI="skd://content"'), true);
  t.deepEqual(key.iv, request.iv);
});

const WIDEVINE_BOX = psshOf(WIDEVINE_ID, Buffer.alloc(4));
const box = (bytes: Buffer) => (): string => `<cpix:PSSH>${base64(bytes)}</cpix:PSSH>`;
const tag = (text: string) => (): string =>
  `<cpix:HLSSignalingData playlist="media">${base64(text)}</cpix:HLSSignalingData>`;
const edit =
  (from: string | RegExp, to: string) =>
  (text: string): string =>
    text.replace(from, to);

const HOSTILE: Readonly<Record<string, readonly [AnswerChanges, (text: string) => string, RegExp]>> = {
  'another KeyId': [{ kid: '22222222-2222-2222-2222-222222222222' }, String, /another KeyId than was asked for: /],
  'a key that is too short': [{ key: Buffer.alloc(15, 1) }, String, /the key of the answer has 15 bytes, not 16/],
  'a key that is too long': [{ key: Buffer.alloc(32, 1) }, String, /the key of the answer has 32 bytes, not 16/],
  'no key': [{}, edit(/<cpix:Data>.*<\/cpix:Data>/, ''), /the answer has no key/],
  'no keys': [{}, edit(/<cpix:ContentKeyList>[^]*<\/cpix:ContentKeyList>/, ''), /the answer has no key/],
  'an encrypted key': [
    {},
    edit(/<pskc:PlainValue>.*<\/pskc:PlainValue>/, '<pskc:EncryptedValue/>'),
    /encrypted for a certificate/,
  ],
  'a key that is no base64': [
    {},
    edit(/<pskc:PlainValue>./, '<pskc:PlainValue>*'),
    /the key of the answer is no base64/,
  ],
  'the key twice': [{}, edit(/(<cpix:ContentKey [^]*<\/cpix:ContentKey>)/, '$1$1'), /two keys/],
  'another scheme': [{}, edit('"cbcs"', '"cenc"'), /another scheme/],
  'another content': [{}, edit('default_app_one', 'default_app_two'), /another contentId/],
  'an IV of another length': [
    {},
    edit(/explicitIV="[^"]+"/, 'explicitIV="AAAA"'),
    /explicitIV of the answer has 3 bytes/,
  ],
  'another key system': [{}, edit(WIDEVINE_ID, PLAYREADY_ID), /the answer lacks Widevine/],
  'nothing for the key system': [{ system: () => '' }, String, /neither PSSH nor HLSSignalingData of Widevine/],
  'a box of another system': [
    { system: box(psshOf(PLAYREADY_ID, Buffer.alloc(4))) },
    String,
    /PSSH of Widevine is no pssh box of it/,
  ],
  'a box that is cut off': [{ system: box(WIDEVINE_BOX.subarray(0, -1)) }, String, /is no pssh box/],
  'a tag of another kind': [{ system: tag('#EXT-X-MAP:URI="x"') }, String, /a line that is no #EXT-X-KEY/],
  'a line after its tag': [
    { system: tag('#EXT-X-KEY:METHOD=SAMPLE-AES\n#EXTINF:1') },
    String,
    /a line that is no #EXT-X-KEY/,
  ],
  'a tag without encryption': [{ system: tag('#EXT-X-KEY:METHOD=NONE') }, String, /another METHOD than SAMPLE-AES/],
  'a tag with a control character': [
    { system: tag('#EXT-X-KEY:METHOD=SAMPLE-AES,URI="\u0000"') },
    String,
    /a line that is no/,
  ],
  'a tag of endless length': [
    { system: tag(`#EXT-X-KEY:METHOD=SAMPLE-AES,URI="${'a'.repeat(1e5)}"`) },
    String,
    /is too long/,
  ],
  'a document type': [
    {},
    (text) => text.replace('<cpix:CPIX', '<!DOCTYPE x [<!ENTITY a "b">]><cpix:CPIX'),
    /it has a document type/,
  ],
  'an end that is missing': [{}, (text) => text.slice(0, -20), /it is not well-formed/],
  'another root element': [{}, () => '<html/>', /another root element/],
  'no text': [{}, () => '', /no CPIX document/],
};

for (const [what, [changes, change, message]] of Object.entries(HOSTILE)) {
  test(`an answer with ${what} is refused, and its key is not in the error`, (t) => {
    const error = t.throws(() => answered(asked(), changes, change), { instanceOf: CpixError, message });
    t.false(error?.message.includes(base64(keyOfId(uuidOf(asked())))));
  });
}

test('answers that are cut off or changed anywhere give a key or a clear error', (t) => {
  const request = asked({ systems: ['Widevine', 'FairPlay'] });
  const whole = Buffer.from(answerOf(question(request)));
  let seed = 35;
  const random = (below: number): number => {
    seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
    return seed % below;
  };
  for (let round = 0; round < 400; round++) {
    const bytes = Buffer.from(whole.subarray(0, round % 2 === 0 ? random(whole.length) : whole.length));
    for (let changes = random(4); changes > 0 && bytes.length > 0; changes--) bytes[random(bytes.length)] = random(256);
    try {
      t.is(readCpixAnswer(bytes, request).key.length, 16);
    } catch (error) {
      t.true(error instanceof CpixError, String(error));
    }
  }
});
