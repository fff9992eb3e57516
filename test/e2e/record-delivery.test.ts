import { execFile } from 'node:child_process';
import { mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import test from 'ava';
import { controlServer, json } from '../support/access/control-server.ts';
import { patternArguments, Program } from '../support/media/ffmpeg.ts';
import { Kiln } from '../support/server/kiln.ts';
import { openS3 } from '../support/recording/s3.ts';
import { until } from '../support/time/until.ts';

const PICTURE = { size: '160x90', rate: 15, gop: 15, bitrate: '200k' };
const APP = '/v1/vhosts/default/apps/app';
const run = promisify(execFile);

interface Recording {
  readonly id: string;
  readonly path: string;
  readonly upload?: { readonly state: string; readonly url?: string };
}

interface Announced {
  readonly upload?: { readonly key: string };
}

test('recordings of a server that is killed while its storage is away are announced and uploaded after all', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'kiln-delivery-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const s3 = await openS3(t);
  const hook = await controlServer(t, json({}));
  const announced = (): Announced[] => hook.questions.map(({ body }) => JSON.parse(body.toString()) as Announced);
  const root = join(folder, 'records');
  const kiln = await Kiln.start({
    publishers: `<FILE><RootPath>${root}</RootPath><FilePath>\${Id}/\${Sequence}.ts</FilePath><Record>
      <Webhook><ControlServerUrl>${hook.url}</ControlServerUrl><SecretKey>hidden-key</SecretKey></Webhook>
      <Upload><Endpoint>${s3.settings.endpoint}</Endpoint><Bucket>records</Bucket><Prefix>\${Application}/</Prefix>
        <AccessKeyId>id</AccessKeyId><SecretAccessKey>hidden-key</SecretAccessKey></Upload></Record></FILE>`,
  });
  t.teardown(() => kiln.stop());
  s3.proxy.refuse = () => 0;
  const program = new Program('ffmpeg', [...patternArguments(PICTURE), '-f', 'flv', kiln.rtmpUrl('live')]);
  t.teardown(() => program.stop());
  await kiln.liveStream('live');
  const stream = { name: 'live' };
  await kiln.api(`${APP}:startRecord`, 'POST', { id: 'split', stream, interval: 1000 });
  await kiln.api(`${APP}:startRecord`, 'POST', { id: 'whole', stream });
  await until('a file is announced', () => announced().length > 0);
  await until('its upload has failed', () => kiln.log.includes('delivery.failed'));
  const list = async (id: string) =>
    (await kiln.api<{ recordings: Recording[] }>(`${APP}/recordings?recordId=${id}`)).body.response.recordings;
  const [waiting] = await list('split');
  t.like(waiting, { path: 'split/0.ts', upload: { state: 'waiting' } });
  const refused = await kiln.api<unknown>(`${APP}/recordings/${waiting?.id}`, 'DELETE');
  t.is(refused.status, 409);
  await until('there is something of the whole one', async () => {
    const [name] = (await readdir(join(root, 'whole'))).filter((file) => file.startsWith('tmp_'));
    return name !== undefined && (await stat(join(root, 'whole', name))).size > 0;
  });
  await kiln.restart();
  s3.proxy.refuse = () => undefined;
  const wanted = ['app/split/0.ts', 'app/whole/0.ts'];
  await until('both are uploaded, and announced again', () => {
    const keys = announced().map(({ upload }) => upload?.key ?? '');
    return wanted.every((key) => keys.includes(key));
  });
  for (const [index, key] of wanted.entries()) {
    const copy = join(folder, `${index}.ts`);
    await writeFile(copy, await s3.get(key));
    await t.notThrowsAsync(() => run('ffmpeg', ['-v', 'error', '-xerror', '-i', copy, '-f', 'null', '-']));
  }
  for (const id of ['split', 'whole']) {
    const [uploaded] = await list(id);
    const url = `${s3.settings.endpoint}/records/app/${id}/0.ts`;
    t.like(uploaded, { path: `${id}/0.ts`, upload: { state: 'uploaded', bucket: 'records', url } });
    t.is((await kiln.api(`${APP}/recordings/${uploaded?.id}`, 'DELETE')).status, 200);
    t.false((await readdir(join(root, id))).includes('0.ts'));
  }
  t.notRegex(kiln.log, /hidden-key/);
});
