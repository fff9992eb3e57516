import { createHash, X509Certificate } from 'node:crypto';
import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { ExecutionContext } from 'ava';
import { XMLParser } from 'fast-xml-parser';
import { issue } from '../network/x509.ts';

/** What a key server was asked for. */
export interface KeyQuestion {
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  readonly contentId: string;
  readonly kid: string;
  readonly scheme: string;
  readonly iv: string;
  /** Number of the period; absent in a request without one. */
  readonly index: string | undefined;
  readonly systemIds: readonly string[];
}

export const WIDEVINE_ID = 'edef8ba9-79d6-4ace-a3c8-27dcd51d21ed';
export const PLAYREADY_ID = '9a04f079-9840-4286-ab92-e65be0885f95';
export const FAIRPLAY_ID = '94ce86fb-07ff-4f43-adb8-93d2fa968ca2';

/** Answers instead of the key server. */
type Instead = (response: ServerResponse, question: KeyQuestion) => void;

/** Key of a KeyId: the same whenever it is asked for. */
export function keyOfId(kid: string): Buffer {
  return createHash('md5').update(`key of ${kid.toLowerCase()}`).digest();
}

const base64 = (data: string | Buffer): string => Buffer.from(data).toString('base64');
const hex = (uuid: string): Buffer => Buffer.from(uuid.replaceAll('-', ''), 'hex');

/** A `pssh` box of version 0 (ISO/IEC 23001-7, 8.1). */
export function psshOf(systemId: string, data: Buffer): Buffer {
  const box = Buffer.concat([
    Buffer.alloc(4),
    Buffer.from('pssh'),
    Buffer.alloc(4),
    hex(systemId),
    Buffer.alloc(4),
    data,
  ]);
  box.writeUInt32BE(box.length, 0);
  box.writeUInt32BE(data.length, 28);
  return box;
}

const LIST = /^(?:ContentKey|DRMSystem|ContentKeyUsageRule|ContentKeyPeriod|HLSSignalingData)$/;
const parser = new XMLParser({
  ignoreAttributes: false,
  attributeNamePrefix: '@',
  removeNSPrefix: true,
  isArray: (name) => LIST.test(name),
});

interface Parsed {
  readonly CPIX?: {
    readonly '@contentId'?: string;
    readonly '@version'?: string;
    readonly ContentKeyList?: { readonly ContentKey?: readonly Record<string, string>[] };
    readonly DRMSystemList?: { readonly DRMSystem?: readonly Record<string, unknown>[] };
    readonly ContentKeyPeriodList?: { readonly ContentKeyPeriod?: readonly Record<string, string>[] };
    readonly ContentKeyUsageRuleList?: { readonly ContentKeyUsageRule?: readonly Record<string, unknown>[] };
  };
}

/** Reads a request as the schema of CPIX 2.3 and the profile of SPEKE v2 have it. @throws Error with what a server refuses */
function readQuestion(headers: IncomingHttpHeaders, body: string): KeyQuestion {
  const need = <T>(value: T | undefined, what: string): T => {
    if (value === undefined || value === '') throw new Error(`Missing ${what}`);
    return value;
  };
  if (headers['x-speke-version'] !== '2.0') throw new Error('Unsupported SPEKE version');
  if (headers['content-type'] !== 'application/xml') throw new Error('Unsupported Content-Type');
  const cpix = need((parser.parse(body) as Parsed).CPIX, 'CPIX');
  if (need(cpix['@version'], 'CPIX@version') !== '2.3') throw new Error('Unsupported CPIX@version');
  const key = need(cpix.ContentKeyList?.ContentKey?.[0], 'ContentKey');
  const kid = need(key['@kid'], 'ContentKey@kid');
  const scheme = need(key['@commonEncryptionScheme'], `ContentKey@commonEncryptionScheme for KID ${kid}`);
  const systems = need(cpix.DRMSystemList?.DRMSystem, 'DRMSystem');
  const rule = need(cpix.ContentKeyUsageRuleList?.ContentKeyUsageRule?.[0], 'ContentKeyUsageRule');
  if (rule['@kid'] !== kid || systems.some((system) => system['@kid'] !== kid)) throw new Error('Unknown KID');
  need(rule['@intendedTrackType'], 'ContentKeyUsageRule@intendedTrackType');
  const period = cpix.ContentKeyPeriodList?.ContentKeyPeriod?.[0];
  const filter = rule['KeyPeriodFilter'] as Record<string, string> | undefined;
  if (filter?.['@periodId'] !== period?.['@id']) throw new Error('Unknown period');
  return {
    ...{ headers, body, kid, scheme, index: period?.['@index'] },
    contentId: need(cpix['@contentId'], 'CPIX@contentId'),
    iv: need(key['@explicitIV'], 'ContentKey@explicitIV'),
    systemIds: systems.map((system) => String(system['@systemId'])),
  };
}

/** Changes of an answer, for servers that do not what they should. */
export interface AnswerChanges {
  readonly kid?: string;
  readonly key?: Buffer;
  /** Content of the DRMSystem elements. */
  readonly system?: (systemId: string) => string;
}

/** A document that answers a request, with the elements that it left empty filled in. */
export function answerOf(
  { contentId, kid: asked, scheme, iv, systemIds }: KeyQuestion,
  changes: AnswerChanges = {},
): string {
  const { kid = asked, key = keyOfId(kid), system = (id: string) => systemData(id, kid, scheme) } = changes;
  const systems = systemIds.map((id) => `<cpix:DRMSystem kid="${kid}" systemId="${id}">${system(id)}</cpix:DRMSystem>`);
  return `<?xml version="1.0" encoding="UTF-8"?>
<cpix:CPIX contentId="${contentId}" version="2.3" xmlns:cpix="urn:dashif:org:cpix" xmlns:pskc="urn:ietf:params:xml:ns:keyprov:pskc">
  <cpix:ContentKeyList>
    <cpix:ContentKey kid="${kid}" explicitIV="${iv}" commonEncryptionScheme="${scheme}">
      <cpix:Data><pskc:Secret><pskc:PlainValue>${base64(key)}</pskc:PlainValue></pskc:Secret></cpix:Data>
    </cpix:ContentKey>
  </cpix:ContentKeyList>
  <cpix:DRMSystemList>${systems.join('')}</cpix:DRMSystemList>
</cpix:CPIX>`;
}

function systemData(systemId: string, kid: string, scheme: string): string {
  if (systemId !== FAIRPLAY_ID) {
    // of Widevine: a WidevinePsshData with one key id
    const data = Buffer.concat([Buffer.of(0x12, 0x10), hex(kid)]);
    return `<cpix:PSSH>${base64(psshOf(systemId, data))}</cpix:PSSH>`;
  }
  const method = scheme === 'cbcs' ? 'SAMPLE-AES' : 'SAMPLE-AES-CTR';
  const line = (tag: string): string =>
    base64(
      `#${tag}:METHOD=${method},URI="skd://${kid}",KEYFORMAT="com.apple.streamingkeydelivery",KEYFORMATVERSIONS="1"`,
    );
  return (
    `<cpix:HLSSignalingData playlist="media">${line('EXT-X-KEY')}</cpix:HLSSignalingData>` +
    `<cpix:HLSSignalingData playlist="master">${line('EXT-X-SESSION-KEY')}</cpix:HLSSignalingData>`
  );
}

/**
 * A key server on loopback by the public schemas (DASH-IF CPIX 2.3; AWS, "SPEKE API v2"); no real one was seen. It has a
 * certificate that signed itself.
 */
export async function openKeyServer(t: Pick<ExecutionContext, 'teardown'>) {
  const certificate = issue('localhost');
  const questions: KeyQuestion[] = [];
  const refused: string[] = [];
  let instead: Instead | undefined;
  const server = createServer({ cert: certificate.cert, key: certificate.key }, (request, response) => {
    const chunks: Buffer[] = [];
    request
      .on('data', (chunk: Buffer) => chunks.push(chunk))
      .on('end', () => {
        let question: KeyQuestion;
        try {
          question = readQuestion(request.headers, Buffer.concat(chunks).toString());
        } catch (error) {
          refused.push((error as Error).message);
          return void response.writeHead(422).end((error as Error).message);
        }
        questions.push(question);
        if (instead === undefined) send(response, answerOf(question));
        else instead(response, question);
      });
  });
  await new Promise<void>((listening) => void server.listen(0, '127.0.0.1', listening));
  t.teardown(() => {
    server.close();
    server.closeAllConnections();
  });
  const { port } = server.address() as AddressInfo;
  return {
    url: `https://127.0.0.1:${port}/speke/v2.0/copyProtection`,
    /** SHA-256 of the certificate, as browsers show it. */
    fingerprint: new X509Certificate(certificate.cert).fingerprint256,
    /** Requests that a server of the profile takes, and what it refused. */
    questions,
    refused,
    /** Has something else answer from now on. */
    answer: (next: Instead): void => void (instead = next),
    /** Answers as a key server from now on. */
    recover: (): void => void (instead = undefined),
  };
}

export function send(response: ServerResponse, document: string, status = 200): void {
  response
    .writeHead(status, { 'content-type': 'application/xml', 'x-speke-version': '2.0', 'x-speke-user-agent': 'test' })
    .end(document);
}
