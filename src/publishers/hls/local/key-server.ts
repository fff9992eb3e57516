import { post, ControlServerError } from '../../../control-server/post.ts';
import { awsHeaders } from '../../../control-server/sigv4.ts';
import type { DrmKey, DrmNames } from '../../../config/drm-info.ts';
import { systemsIn } from '../../../config/elements/drm.ts';
import type { LlhlsPublisherConfig } from '../../../config/model.ts';
import { Limiter } from '../../../lib/limiter.ts';
import { CpixError, readCpixAnswer } from '../../../packaging/drm/cpix-answer.ts';
import { cpixRequest, keyRequest } from '../../../packaging/drm/cpix-request.ts';
import type { KeyCounts } from '../answer/counts.ts';
import { fillMacros } from '../../../lib/macros.ts';

export type KeyServerConfig = NonNullable<LlhlsPublisherConfig['drm']>['keyServer'][number];

/** Error for a key that a server did not give. Its message has neither a key nor credentials. */
export class KeyServerError extends Error {
  override readonly name = 'KeyServerError';
}

const MAX_ANSWER_BYTES = 256 * 1024;
/** Requests to one server at a time: all streams rotate at once. */
const MAX_AT_ONCE = 8;

/** A server of keys by CPIX documents (DASH-IF CPIX 2.3; AWS, "SPEKE API v2"). */
export class KeyServer {
  readonly config: KeyServerConfig;
  readonly #counts: KeyCounts;
  readonly #limiter = new Limiter(MAX_AT_ONCE);

  constructor(config: KeyServerConfig, counts: KeyCounts) {
    this.config = config;
    this.#counts = counts;
  }

  /** Asks once for the key of a period. @throws KeyServerError */
  async ask(names: DrmNames, period: number, signal: AbortSignal): Promise<DrmKey> {
    return await this.#limiter.run(async () => {
      this.#counts.requests++;
      try {
        return await this.#ask(names, period, signal);
      } catch (error) {
        if (!(error instanceof ControlServerError || error instanceof CpixError || error instanceof KeyServerError))
          throw error;
        if (!signal.aborted) this.#counts.requestFailures++;
        throw new KeyServerError(`${new URL(this.config.url).host}: ${error.message}`);
      }
    });
  }

  async #ask(names: DrmNames, period: number, signal: AbortSignal): Promise<DrmKey> {
    const { url, contentId, cencProtectScheme: scheme, systems, timeout, certificateFingerprint } = this.config;
    const request = keyRequest({
      ...{ contentId: contentIdOf(contentId, names), period, scheme },
      systems: systemsIn(systems) ?? [],
    });
    const body = Buffer.from(cpixRequest(request));
    const headers = {
      'Content-Type': 'application/xml',
      Accept: 'application/xml',
      'X-Speke-Version': '2.0',
      ...this.#credentials(body),
    };
    const call = { url, headers, body, timeout, maxAnswerBytes: MAX_ANSWER_BYTES, fingerprint: certificateFingerprint };
    const answer = await post(call, signal);
    if (answer.status >= 300 && answer.status < 400) {
      const to = answer.headers.location ?? '';
      const host = URL.canParse(to, url) ? ` to ${new URL(to, url).host}` : '';
      throw new KeyServerError(`it redirects${host}: Kiln sends keys' requests to no other URL`);
    }
    if (answer.status !== 200) throw new KeyServerError(`it answered with status ${answer.status}`);
    return readCpixAnswer(answer.body, request);
  }

  #credentials(body: Buffer): Record<string, string> {
    const { url, userName, password, accessKeyId, secretAccessKey, region, service } = this.config;
    if (accessKeyId !== undefined && secretAccessKey !== undefined)
      return {
        ...awsHeaders({ accessKeyId, secretAccessKey, region, service }, { method: 'POST', url, body }, Date.now()),
      };
    if (userName === undefined) return {};
    return { Authorization: `Basic ${Buffer.from(`${userName}:${password ?? ''}`).toString('base64')}` };
  }
}

/** Fills in the names of a stream. */
function contentIdOf(text: string, { vhost, app, stream }: DrmNames): string {
  const values = new Map([
    ['VHostName', vhost],
    ['AppName', app],
    ['StreamName', stream],
  ]);
  return fillMacros(text, (name) => values.get(name));
}
