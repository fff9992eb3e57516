import { createHash } from 'node:crypto';
import { hmac } from './signature.ts';

export interface AwsCredentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  /** Region and service of the scope, such as `us-east-1` and `execute-api`. */
  readonly region: string;
  readonly service: string;
}

const ALGORITHM = 'AWS4-HMAC-SHA256';

/**
 * Headers that sign a request for services of AWS (Signature Version 4, "Create a signed AWS API request").
 * @param now milliseconds since the epoch
 */
export function awsHeaders(
  { accessKeyId, secretAccessKey, region, service }: AwsCredentials,
  { method, url, body }: { readonly method: string; readonly url: string; readonly body: Buffer },
  now: number,
): { readonly 'X-Amz-Date': string; readonly Authorization: string } {
  const { host, pathname, searchParams } = new URL(url);
  const time = new Date(now).toISOString().replaceAll(/[-:]|\.\d+/g, '');
  const scope = [time.slice(0, 8), region, service, 'aws4_request'];
  const signedHeaders = 'host;x-amz-date';
  const canonical = [
    method,
    pathname.split('/').map(encoded).join('/'),
    [...searchParams]
      .map(([name, value]) => [encoded(name), encoded(value)] as const)
      .sort(([one, value], [other, otherValue]) => compared(one, other) || compared(value, otherValue))
      .map((pair) => pair.join('='))
      .join('&'),
    `host:${host}\nx-amz-date:${time}\n`,
    signedHeaders,
    sha256(body),
  ].join('\n');
  const key = scope.reduce<string | Buffer>((from, part) => hmac('sha256', from, part), `AWS4${secretAccessKey}`);
  const signed = hmac('sha256', key, [ALGORITHM, time, scope.join('/'), sha256(canonical)].join('\n')).toString('hex');
  return {
    'X-Amz-Date': time,
    Authorization: `${ALGORITHM} Credential=${accessKeyId}/${scope.join('/')}, SignedHeaders=${signedHeaders}, Signature=${signed}`,
  };
}

/** Percent-encodes all but the unreserved characters of RFC 3986: of a path that is encoded, once more. */
function encoded(text: string): string {
  return encodeURIComponent(text).replaceAll(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`);
}

/** Order by code point. */
function compared(one: string, other: string): number {
  return one < other ? -1 : Number(one > other);
}

function sha256(data: string | Buffer): string {
  return createHash('sha256').update(data).digest('hex');
}
