import { createHash, createHmac, randomBytes } from 'node:crypto';
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { pino } from 'pino';
import { Buckets } from '../../../src/recording/delivery/buckets.ts';
import {
  Deliveries,
  type DeliveriesOptions,
  type DeliverySettings,
} from '../../../src/recording/delivery/deliveries.ts';
import type { FinishedFile } from '../../../src/recording/journal.ts';
import { controlServer, json, type Question } from '../../support/access/control-server.ts';
import { openS3, type S3Request } from '../../support/recording/s3.ts';
import { until } from '../../support/time/until.ts';

const MIB = 1024 * 1024;
const TIMES = { createdTime: 1000, startTime: 2000, finishTime: 3000 };

/** A node that delivers, and can be started again. */
function openNode(t: ExecutionContext, settings: () => DeliverySettings | undefined) {
  const folder = mkdtempSync(join(tmpdir(), 'kiln-delivery-'));
  const jobs = join(folder, 'delivery');
  let lines = '';
  const log = pino({ level: 'debug' }, { write: (line) => void (lines += line) });
  const told: object[] = [];
  const onUpload: DeliveriesOptions['onUpload'] = async ({ startTime }, temporary, upload, isLocal) =>
    void told.push({ startTime, temporary, upload, isLocal });
  const buckets = new Buckets();
  const open = (): Deliveries =>
    new Deliveries({ folder: jobs, node: 'n1', settingsOf: settings, onUpload, buckets, log });
  let deliveries = open();
  t.teardown(async () => {
    await deliveries.close();
    await buckets.close();
    rmSync(folder, { recursive: true });
  });
  return {
    log: () => lines,
    /** Uploads that have ended. */
    told,
    isUploading: (id: string) => deliveries.isUploading(`tmp_${id}`),
    start: () => deliveries.start(),
    restart: async () => {
      await deliveries.close();
      deliveries = open();
      deliveries.start();
    },
    /** Names of what is not delivered yet. */
    waiting: () => (existsSync(jobs) ? readdirSync(jobs).filter((name) => name.endsWith('.json')) : []),
    finish: async (
      name: string,
      data: Buffer,
      delivery = { announced: true, uploaded: true },
      id = name,
      more: Partial<FinishedFile> = {},
    ) => {
      const filePath = join(folder, name);
      writeFileSync(filePath, data);
      // the last ones are gone
      for (const { name: file } of more.subtitles?.slice(0, 1) ?? []) writeFileSync(join(folder, file), 'WEBVTT');
      const file: FinishedFile = {
        ...{
          temporary: join(folder, `tmp_${id}`),
          root: folder,
          file: name,
          info: 'i.xml',
          filePath,
          pathBelow: name,
        },
        ...{ transactionId: 'T', id: 'task', metadata: 'm', vhost: 'v', app: 'a', stream: 's', source: 'in' },
        ...{ recordBytes: data.length, recordTime: 1500, sequence: 4, lastSequence: true, delivery, ...TIMES },
        ...more,
      };
      await deliveries.deliver(file);
      return filePath;
    },
  };
}

function upload(s3: Awaited<ReturnType<typeof openS3>>, more: { prefix?: string; deleteLocal?: boolean } = {}) {
  return { prefix: '', deleteLocal: false, ...s3.settings, ...more };
}

const bodyOf = ({ body }: Question) => JSON.parse(body.toString());
const isPart = ({ method, url }: S3Request): boolean => method === 'PUT' && url.includes('partNumber');

test('a finished file is announced, uploaded, deleted and announced again', async (t) => {
  const s3 = await openS3(t);
  const hook = await controlServer(t, json({}, 204));
  const settings = {
    webhook: { controlServerUrl: hook.url, secretKey: 'hook secret', timeout: 3000 },
    upload: upload(s3, { prefix: '/rec/${Application}/${EndTime:YYYY}/', deleteLocal: true }),
  };
  const node = openNode(t, () => settings);
  node.start();
  const large = randomBytes(9 * MIB);
  const path = await node.finish('ä b.mp4', large);
  await node.finish('small.ts', Buffer.from('small'));
  await until('all is delivered', () => node.waiting().length === 0);
  t.deepEqual((await s3.keys()).sort(), ['rec/a/1970/small.ts', 'rec/a/1970/ä b.mp4']);
  t.true((await s3.get('rec/a/1970/ä b.mp4')).equals(large));
  t.false(existsSync(path));
  t.is(hook.questions.length, 4);
  const [finished, uploaded] = hook.questions.filter((question) => bodyOf(question).file === path);
  t.like(bodyOf(finished as Question), {
    id: 'ä b.mp4-finished',
    ...{ event: 'finished', node: 'n1', size: large.length, duration: 1500, sequence: 4, lastSequence: true },
    task: { id: 'task', vhost: 'v', app: 'a', stream: 's', metadata: 'm', transactionId: 'T' },
    upload: undefined,
  });
  t.is(Date.parse(bodyOf(finished as Question).finishTime), 3000);
  const { id, event, upload: stored } = bodyOf(uploaded as Question);
  t.deepEqual([id, event], ['ä b.mp4-uploaded', 'uploaded']);
  t.like(stored, { bucket: 'records', key: 'rec/a/1970/ä b.mp4' });
  t.regex(stored.etag, /^[\da-f]{32}-2$/);
  for (const { headers, body } of hook.questions) {
    t.is(headers['x-ome-signature'], createHmac('sha1', 'hook secret').update(body).digest('base64url'));
  }
  t.notRegex(node.log(), /secret/);
});

test('subtitles of a file are uploaded, announced and deleted with it', async (t) => {
  const s3 = await openS3(t);
  const hook = await controlServer(t, json({}, 204));
  const settings = {
    webhook: { controlServerUrl: hook.url, secretKey: 'hook secret', timeout: 3000 },
    upload: upload(s3, { prefix: 'rec/', deleteLocal: true }),
  };
  const node = openNode(t, () => settings);
  node.start();
  const subtitles = ['a.English.en.vtt', 'a.French.vtt'].map((name, index) => ({ label: name, name, inode: index }));
  const path = await node.finish('a.mp4', Buffer.from('media'), undefined, undefined, { subtitles });
  const [english, french] = subtitles.map(({ name }) => join(dirname(path), name));
  await until('all is delivered', () => node.waiting().length === 0);
  t.deepEqual((await s3.keys()).sort(), ['rec/a.English.en.vtt', 'rec/a.mp4']);
  t.is((await s3.get('rec/a.English.en.vtt')).toString(), 'WEBVTT');
  t.false([english, path].some((one) => existsSync(String(one))));
  const uploaded = hook.questions.map(bodyOf).find(({ event }) => event === 'uploaded');
  t.deepEqual(uploaded.subtitles, [
    { label: 'a.English.en.vtt', file: english, key: 'rec/a.English.en.vtt' },
    { label: 'a.French.vtt', file: french },
  ]);
});

test('an upload goes on where it was when the node stopped, and the log says why it did not go on', async (t) => {
  const s3 = await openS3(t);
  s3.proxy.refuse = (request) => (request.url.includes('partNumber=3') ? 503 : undefined);
  const node = openNode(t, () => ({ upload: upload(s3) }));
  node.start();
  const data = randomBytes(20 * MIB);
  const path = await node.finish('a.mp4', data);
  await until('the third part is refused', () => node.log().includes('503'));
  s3.proxy.refuse = () => 0;
  s3.requests.length = 0;
  await node.restart();
  await until('the storage is tried after the start', () => s3.requests.length > 0);
  s3.proxy.refuse = () => undefined;
  await until('it is uploaded', () => node.waiting().length === 0);
  await until('the log says so', () => node.log().includes('"event":"delivery.resumed"'));
  t.deepEqual(new Set(s3.requests.filter(isPart).map(({ url }) => /partNumber=(\d)/.exec(url)?.[1])), new Set(['3']));
  t.true((await s3.get('a.mp4')).equals(data));
  t.true(existsSync(path));
  t.regex(node.log(), /"event":"delivery.failed".*"waiting":1,.*cannot be uploaded/);
});

test('a webhook that fails gets each announcement again with its id, also after a restart, and keeps no upload', async (t) => {
  const s3 = await openS3(t);
  let status = 500;
  const hook = await controlServer(t, (response) => json({}, status)(response));
  const webhook = { controlServerUrl: hook.url, timeout: 3000 };
  const node = openNode(t, () => ({ webhook, upload: upload(s3) }));
  node.start();
  await node.finish('a.ts', Buffer.from('a'));
  await until('it is uploaded', async () => (await s3.keys()).length > 0);
  await until('both announcements are tried twice', () => hook.questions.length > 4);
  await node.restart();
  status = 200;
  await until('all is delivered', () => node.waiting().length === 0);
  const ids = new Set(hook.questions.map((question) => bodyOf(question).id));
  t.deepEqual(ids, new Set(['a.ts-finished', 'a.ts-uploaded']));
});

test('a delivery that is no longer wanted is given up, and one of no application waits', async (t) => {
  let settings: DeliverySettings | undefined;
  const node = openNode(t, () => settings);
  await node.finish('a.ts', Buffer.from('a'));
  node.start();
  await until('both have been tried', () => node.log().split('no such application').length > 2);
  t.is(node.waiting().length, 2);
  settings = {};
  await until('they are given up', () => node.waiting().length === 0);
  t.regex(node.log(), /"event":"delivery.given-up".*no Webhook any more/);
  t.regex(node.log(), /"event":"delivery.given-up".*no Upload any more/);
});

test('a file that is gone is given up', async (t) => {
  const s3 = await openS3(t);
  const node = openNode(t, () => ({ upload: upload(s3) }));
  rmSync(await node.finish('a.ts', Buffer.from('a'), { announced: false, uploaded: true }));
  node.start();
  await until('it is given up', () => node.waiting().length === 0);
  t.regex(node.log(), /"event":"delivery.given-up".*the file is gone/);
  t.deepEqual(await s3.keys(), []);
});

test('ends of uploads are told with the address of the object, and until then a file is one to be uploaded', async (t) => {
  const s3 = await openS3(t);
  let settings: DeliverySettings = { upload: upload(s3, { deleteLocal: true }) };
  const node = openNode(t, () => settings);
  const only = { announced: false, uploaded: true };
  await node.finish('ä b.ts', Buffer.from('a'), only, 'one');
  t.true(await node.isUploading('one'));
  node.start();
  await until('it is uploaded', () => node.waiting().length === 0);
  t.false(await node.isUploading('one'));
  settings = {};
  await node.finish('b.ts', Buffer.from('b'), only, 'two');
  await until('it is given up', () => node.waiting().length === 0);
  const url = `${s3.settings.endpoint}/records/%C3%A4%20b.ts`;
  const etag = createHash('md5').update('a').digest('hex');
  const uploaded = { state: 'uploaded', bucket: 'records', key: 'ä b.ts', url, etag };
  t.deepEqual(node.told, [
    { startTime: 2000, temporary: 'tmp_one', upload: uploaded, isLocal: false },
    { startTime: 2000, temporary: 'tmp_two', upload: { state: 'failed' }, isLocal: true },
  ]);
});

test('a bucket that is not there is a reason in the log, without keys', async (t) => {
  const s3 = await openS3(t);
  const node = openNode(t, () => ({ upload: { ...upload(s3), bucket: 'nowhere' } }));
  node.start();
  const path = await node.finish('a.ts', Buffer.from('a'), { announced: false, uploaded: true });
  await until('the reason is logged', () => node.log().includes('NoSuchBucket'));
  t.true(existsSync(path));
  t.is(node.waiting().length, 1);
  t.notRegex(node.log(), /secret/);
});

test('a storage that knows no conditions keeps the objects of others, too', async (t) => {
  const s3 = await openS3(t);
  const node = openNode(t, () => ({ upload: upload(s3) }));
  node.start();
  const sizes = [5, 9 * MIB];
  const put = async (from: number) => {
    for (const [index, size] of sizes.entries()) {
      const delivery = { announced: false, uploaded: true };
      const path = await node.finish(`${index}.ts`, Buffer.alloc(size, from), delivery, `${from}${index}`);
      await until('it is uploaded', () => node.waiting().length === 0);
      rmSync(path);
    }
  };
  await put(1);
  s3.proxy.refuse = ({ condition }) => (condition === undefined ? undefined : 501);
  await put(2);
  t.deepEqual((await s3.keys()).sort(), ['0.ts', '0_1.ts', '1.ts', '1_1.ts']);
  for (const [index, size] of sizes.entries()) {
    t.true((await s3.get(`${index}.ts`)).equals(Buffer.alloc(size, 1)));
    t.true((await s3.get(`${index}_1.ts`)).equals(Buffer.alloc(size, 2)));
  }
});
