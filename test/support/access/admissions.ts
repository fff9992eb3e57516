import type { ExecutionContext } from 'ava';
import { controlServer, json } from './control-server.ts';

/** What a control server is told of a session, as far as tests look at it. */
interface Call {
  readonly client: { readonly address: string; readonly user_agent?: string };
  readonly request: {
    readonly status: 'opening' | 'closing';
    readonly direction: string;
    readonly protocol: string;
    readonly url: string;
    readonly new_url?: string;
  };
}

/** The control server of a test, which tells clients apart by `who` in the query of the URL that they ask for. */
export interface Admissions {
  readonly url: string;
  /** All calls so far, in order, as `opening viewer`. */
  list(): string[];
  /** How often it was told that a client opens or has closed. */
  count(status: 'opening' | 'closing', who: string): number;
  /** The calls about a client. */
  of(who: string): Call['request'][];
}

/** @param answer to the opening of a client; all are allowed without it */
export async function startAdmissions(
  t: Pick<ExecutionContext, 'teardown'>,
  answer: (request: Call['request']) => object = () => ({ allowed: true }),
): Promise<Admissions> {
  const calls: Call['request'][] = [];
  const { url } = await controlServer(t, (response, { body }) => {
    const { request } = JSON.parse(body.toString()) as Call;
    calls.push(request);
    json(request.status === 'closing' ? {} : answer(request))(response);
  });
  const of = (who: string): Call['request'][] => calls.filter((call) => whoAsks(call.url) === who);
  return {
    url,
    list: () => calls.map(({ status, url: asked }) => `${status} ${whoAsks(asked)}`),
    count: (status, who) => of(who).filter((call) => call.status === status).length,
    of,
  };
}

/** The client that a URL names. */
export function whoAsks(url: string): string | undefined {
  return /[?&]who=([^&]*)/.exec(url)?.[1];
}

/** `AdmissionWebhooks` of a virtual host. */
export function admissionsXml(
  { url }: Pick<Admissions, 'url'>,
  providers = 'rtmp,srt,webrtc',
  publishers = 'webrtc,llhls,srt,thumbnail',
): string {
  return (
    `<AdmissionWebhooks><ControlServerUrl>${url}</ControlServerUrl><SecretKey>of the control server</SecretKey>` +
    `<Timeout>20000</Timeout><Enables><Providers>${providers}</Providers><Publishers>${publishers}</Publishers></Enables></AdmissionWebhooks>`
  );
}
