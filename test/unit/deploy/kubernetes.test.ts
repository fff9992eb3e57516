import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { configOf, documents, icePorts, LEAST, read, openPorts, ROOT, STOP_S } from './support.ts';

const FOLDER = 'deploy/kubernetes';

interface Labels {
  readonly [name: string]: string;
}

interface Probe {
  readonly httpGet: { readonly path: string; readonly port: string };
}

interface Container {
  readonly image: string;
  readonly env: readonly {
    readonly name: string;
    readonly value?: string;
    readonly valueFrom?: { readonly secretKeyRef?: object; readonly fieldRef?: object };
  }[];
  readonly ports: readonly {
    readonly name: string;
    readonly containerPort: number;
    readonly hostPort?: number;
    readonly protocol?: string;
  }[];
  readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string }[];
  readonly lifecycle: { readonly preStop: { readonly exec: { readonly command: readonly string[] } } };
  readonly securityContext: object;
  readonly [probe: `${string}Probe`]: Probe;
}

interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly resources: readonly string[];
  readonly spec: {
    readonly serviceName: string;
    readonly selector: Labels & { readonly matchLabels: Labels };
    readonly ports: readonly { readonly targetPort: string; readonly protocol?: string }[];
    readonly clusterIP?: string;
    readonly publishNotReadyAddresses?: boolean;
    readonly scaleTargetRef: object;
    readonly template: {
      readonly metadata: { readonly labels: Labels };
      readonly spec: {
        readonly terminationGracePeriodSeconds: number;
        readonly enableServiceLinks: boolean;
        readonly securityContext: object;
        readonly containers: readonly [Container];
        readonly volumes: readonly { readonly name: string }[];
      };
    };
    readonly volumeClaimTemplates: readonly { readonly metadata: { readonly name: string } }[];
  };
}

function load(t: ExecutionContext) {
  const files = readdirSync(join(ROOT, FOLDER));
  const all = files.flatMap((file) => documents<Manifest>(t, `${FOLDER}/${file}`));
  const only = (kind: string): Manifest => {
    const found = all.filter((one) => one.kind === kind);
    t.is(found.length, 1, kind);
    return found[0] as Manifest;
  };
  return { files, all, only, services: all.filter(({ kind }) => kind === 'Service') };
}

test('every file is applied, and none brings a secret', (t) => {
  const { files, all, only } = load(t);
  t.deepEqual(['kustomization.yaml', ...only('Kustomization').resources].sort(), files.sort());
  t.false(all.some(({ kind }) => kind === 'Secret'));
});

test('a pod has what config/cluster.xml asks for, and shows the ports of it', async (t) => {
  const {
    spec: { template, volumeClaimTemplates },
  } = load(t).only('StatefulSet');
  const [container] = template.spec.containers;
  const env: Record<string, string> = {};
  for (const { name, value, valueFrom } of container.env) {
    if (/SECRET|TOKEN|PASSWORD|REDIS_URL/.test(name)) t.truthy(valueFrom?.secretKeyRef, `${name} is a reference`);
    env[name] = value ?? (valueFrom?.fieldRef === undefined ? 'redis://of.a.secret' : '10.0.0.1');
  }
  const config = await configOf(t, env);
  const shown = container.ports
    .filter(({ hostPort }) => hostPort === undefined)
    .map(({ containerPort, protocol = 'TCP' }) => `${containerPort}/${protocol.toLowerCase()}`);
  t.deepEqual([...shown].sort(), openPorts(config).sort());
  const media = container.ports.filter(({ hostPort }) => hostPort !== undefined);
  t.deepEqual(
    media.map(({ hostPort, protocol = 'TCP' }) => `${hostPort}/${protocol.toLowerCase()}`).sort(),
    icePorts(config).sort(),
  );
  for (const probe of ['startup', 'liveness', 'readiness'] as const) {
    const { path, port } = (container[`${probe}Probe`] as Probe).httpGet;
    t.is(path, probe === 'readiness' ? '/readyz' : '/livez');
    t.is(container.ports.find(({ name }) => name === port)?.containerPort, config.bind.managers.api?.port);
  }
  const volumes = [
    ...template.spec.volumes.map(({ name }) => name),
    ...volumeClaimTemplates.map(({ metadata }) => metadata.name),
  ];
  t.deepEqual(container.volumeMounts.map(({ name }) => name).sort(), volumes.sort());
  // of a Service kiln-api Kubernetes makes KILN_API_PORT=tcp://...
  t.false(template.spec.enableServiceLinks);
});

test('a pod has the time to drain, and no rights', async (t) => {
  const {
    spec: {
      template: { spec },
    },
  } = load(t).only('StatefulSet');
  const [{ lifecycle, securityContext }] = spec.containers;
  const [program, seconds] = lifecycle.preStop.exec.command;
  t.is(program, 'deploy/drain');
  const { cluster } = await configOf(t, LEAST);
  const drain = (cluster?.node.drainTimeout ?? Infinity) / 1000;
  t.true(spec.terminationGracePeriodSeconds > Number(seconds) + drain + STOP_S);
  t.like(spec.securityContext, { runAsNonRoot: true, runAsUser: 10001, seccompProfile: { type: 'RuntimeDefault' } });
  t.deepEqual(securityContext, {
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    capabilities: { drop: ['ALL'] },
  });
});

test('services, autoscaler and disruption budget mean these pods', (t) => {
  const { only, ...all } = load(t);
  const services = all.services.filter(({ metadata }) => metadata.name !== 'kiln-turn');
  const set = only('StatefulSet');
  const { labels } = set.spec.template.metadata;
  t.deepEqual(set.spec.selector.matchLabels, labels);
  t.is(services.find(({ metadata }) => metadata.name === set.spec.serviceName)?.spec.clusterIP, 'None');
  const { ports } = set.spec.template.spec.containers[0];
  const names = new Set(ports.map(({ name }) => name));
  t.is(services.length, 6);
  for (const { metadata, spec } of services) {
    t.deepEqual({ ...spec.selector } as Labels, labels);
    t.true(
      spec.ports.every(({ targetPort }) => names.has(targetPort)),
      metadata.name,
    );
    for (const { targetPort, protocol } of spec.ports)
      t.is(protocol, ports.find(({ name }) => name === targetPort)?.protocol, targetPort);
  }
  const served = new Set(services.flatMap(({ spec }) => spec.ports.map(({ targetPort }) => targetPort)));
  t.deepEqual(
    ports.filter(({ name, hostPort }) => hostPort === undefined && !served.has(name)),
    [],
    'every port has a service',
  );
  const evenDrained = services
    .filter(({ spec }) => spec.publishNotReadyAddresses === true)
    .map(({ metadata }) => metadata.name);
  t.deepEqual(evenDrained.sort(), ['kiln-api', 'kiln-nodes'], 'with every pod drained, the call that ends it is taken');
  t.deepEqual(only('HorizontalPodAutoscaler').spec.scaleTargetRef, {
    apiVersion: set.apiVersion,
    kind: set.kind,
    name: set.metadata.name,
  });
  t.deepEqual(only('PodDisruptionBudget').spec.selector.matchLabels, labels);
});

test('the relay has what deploy/coturn/start asks for, the secret of the nodes, and a service', (t) => {
  const { only, services } = load(t);
  const {
    spec: { template },
  } = only('Deployment');
  const [container] = template.spec.containers;
  const given = new Map(container.env.map((one) => [one.name, one]));
  const start = read('deploy/coturn/start');
  for (const [, name = ''] of start.matchAll(/\$\{(KILN_\w+):\?/g)) t.true(given.has(name), name);
  for (const name of given.keys()) t.true(start.includes(name), name);
  const node = only('StatefulSet').spec.template.spec.containers[0].env.find(({ name }) => name === 'KILN_TURN_SECRET');
  t.like(node?.valueFrom?.secretKeyRef, { ...given.get('KILN_TURN_SECRET')?.valueFrom?.secretKeyRef });
  t.deepEqual(
    container.volumeMounts.map(({ mountPath }) => mountPath),
    ['/tmp'],
  );
  t.deepEqual(container.securityContext, {
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    capabilities: { drop: ['ALL'] },
  });
  // of the service kiln-turn Kubernetes would make KILN_TURN_PORT=tcp://...
  t.false(template.spec.enableServiceLinks);
  const service = services.find(({ metadata }) => metadata.name === 'kiln-turn');
  t.deepEqual({ ...service?.spec.selector } as Labels, template.metadata.labels);
  t.deepEqual(
    service?.spec.ports.map(({ targetPort }) => targetPort),
    container.ports.map(({ name }) => name),
  );
});
