// Part of the worker that deploy/build-mediasoup-worker builds: src/handles/DatagramBatch.cpp.

#define MS_CLASS "DatagramBatch"

#include "handles/DatagramBatch.hpp"
#include "Logger.hpp"
#include "handles/UdpSocketHandle.hpp"
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <cerrno>
#include <cstring>

/* Static. */

/** Bytes held at most: more are sent before the turn is over. */
static constexpr size_t StoreSize{ 512 * 1024 };
/** Larger ones are sent at once: they are no media. */
static constexpr size_t MaxDatagramSize{ 4096 };
/** Datagrams of one system call. Linux takes 64. */
static constexpr size_t MaxSegments{ 32 };
/** Bytes of one system call, below the size of the largest datagram of IPv4. */
static constexpr size_t MaxRunSize{ 65000 };
/** Peers that are remembered as such whose route does not segment. */
static constexpr size_t MaxUnsegmented{ 4096 };

/** Whether the kernel cuts datagrams. One that does not know UDP_SEGMENT would send a run as one datagram. */
static bool kernelSegments(uv_udp_t* uvHandle)
{
	uv_os_fd_t fd;
	int size{ 0 };
	socklen_t len{ sizeof(size) };

	return uv_fileno(reinterpret_cast<uv_handle_t*>(uvHandle), &fd) == 0 &&
	       getsockopt(fd, SOL_UDP, UDP_SEGMENT, &size, &len) == 0;
}

/* Static methods for UV callbacks. */

inline static void onPrepare(uv_prepare_t* handle)
{
	static_cast<DatagramBatch*>(handle->data)->Flush();
}

inline static void onClosePrepare(uv_handle_t* handle)
{
	delete reinterpret_cast<uv_prepare_t*>(handle);
}

/* Instance methods. */

DatagramBatch::DatagramBatch(UdpSocketHandle& socket, uv_udp_t* uvHandle)
  : socket(socket), uvHandle(uvHandle)
{
	MS_TRACE();
}

bool DatagramBatch::Add(const uint8_t* data, size_t len, const struct sockaddr* addr, Callback* cb)
{
	MS_TRACE();

	static const bool canSegment{ kernelSegments(this->uvHandle) };

	if (!canSegment)
	{
		return false;
	}

	if (len > MaxDatagramSize || (addr->sa_family != AF_INET && addr->sa_family != AF_INET6))
	{
		// What is held for the same peer goes first.
		Flush();

		return false;
	}

	if (this->held.storeLen + len > StoreSize)
	{
		// Not from below: what its callbacks send joins what is being sent.
		if (this->isFlushing)
		{
			return false;
		}

		Flush();
	}

	if (!this->held.store)
	{
		this->held.store.reset(new uint8_t[StoreSize]);
	}

	if (!this->uvPrepare)
	{
		this->uvPrepare       = new uv_prepare_t;
		this->uvPrepare->data = static_cast<void*>(this);
		uv_prepare_init(this->uvHandle->loop, this->uvPrepare);
	}

	if (this->held.datagrams.empty() && !this->isFlushing)
	{
		uv_prepare_start(this->uvPrepare, static_cast<uv_prepare_cb>(onPrepare));
	}

	const auto key         = KeyOf(addr);
	const auto index       = static_cast<int32_t>(this->held.datagrams.size());
	const auto peerIndex   = static_cast<int32_t>(this->held.peers.size());
	const auto [it, isNew] = this->held.peerIndexes.try_emplace(key, peerIndex);

	if (isNew)
	{
		auto& peer = this->held.peers.emplace_back();

		peer.key   = key;
		peer.first = index;
		std::memcpy(
		  &peer.addr, addr, addr->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in));
	}
	else
	{
		this->held.datagrams[this->held.peers[it->second].last].next = index;
	}

	this->held.peers[it->second].last = index;
	this->held.datagrams.push_back({ this->held.storeLen, len, cb, -1 });
	std::memcpy(this->held.store.get() + this->held.storeLen, data, len);
	this->held.storeLen += len;

	return true;
}

void DatagramBatch::Flush()
{
	MS_TRACE();

	if (this->isFlushing || this->held.datagrams.empty())
	{
		return;
	}

	this->isFlushing = true;
	uv_prepare_stop(this->uvPrepare);

	// Callbacks of what is sent may send in turn.
	while (!this->held.datagrams.empty())
	{
		auto sending = std::move(this->held);

		this->held.Clear();

		for (const auto& peer : sending.peers)
		{
			SendToPeer(sending, peer);
		}

		// Its memory is used again.
		if (this->held.datagrams.empty())
		{
			sending.Clear();
			this->held = std::move(sending);
		}
	}

	this->isFlushing = false;
}

void DatagramBatch::Close()
{
	MS_TRACE();

	Flush();

	if (this->uvPrepare)
	{
		uv_close(reinterpret_cast<uv_handle_t*>(this->uvPrepare), static_cast<uv_close_cb>(onClosePrepare));
		this->uvPrepare = nullptr;
	}
}

void DatagramBatch::Held::Clear()
{
	this->storeLen = 0;
	this->datagrams.clear();
	this->peers.clear();
	this->peerIndexes.clear();
}

DatagramBatch::PeerKey DatagramBatch::KeyOf(const struct sockaddr* addr)
{
	PeerKey key{};

	if (addr->sa_family == AF_INET6)
	{
		const auto* in6 = reinterpret_cast<const struct sockaddr_in6*>(addr);

		std::memcpy(key.data(), &in6->sin6_addr, 16);
		std::memcpy(key.data() + 16, &in6->sin6_scope_id, 4);
		std::memcpy(key.data() + 20, &in6->sin6_port, 2);
	}
	else
	{
		const auto* in = reinterpret_cast<const struct sockaddr_in*>(addr);

		std::memcpy(key.data(), &in->sin_addr, 4);
		std::memcpy(key.data() + 20, &in->sin_port, 2);
	}

	return key;
}

// Datagrams of one size, and a smaller one after them, are a run.
void DatagramBatch::SendToPeer(const Held& held, const Peer& peer)
{
	MS_TRACE();

	for (auto first = peer.first; first != -1;)
	{
		const auto size = held.datagrams[first].len;
		size_t count{ 0 };
		size_t total{ 0 };
		auto next = first;

		while (next != -1 && count < MaxSegments && total + held.datagrams[next].len <= MaxRunSize &&
		       held.datagrams[next].len <= size)
		{
			const auto& datagram = held.datagrams[next];

			++count;
			total += datagram.len;
			next = datagram.next;

			if (datagram.len < size)
			{
				break;
			}
		}

		if (count > 1 && !this->unsegmented.contains(peer.key) && SendRun(held, peer, first, count))
		{
			first = next;

			continue;
		}

		for (; first != next; first = held.datagrams[first].next)
		{
			const auto& datagram = held.datagrams[first];

			this->socket.SendNow(
			  held.store.get() + datagram.offset,
			  datagram.len,
			  reinterpret_cast<const struct sockaddr*>(&peer.addr),
			  datagram.cb);
		}
	}
}

/** @return false if nothing was sent */
bool DatagramBatch::SendRun(const Held& held, const Peer& peer, int32_t first, size_t count)
{
	MS_TRACE();

	uv_os_fd_t fd;

	// Datagrams wait in libuv until the socket takes more: these come after them.
	if (
	  uv_udp_get_send_queue_count(this->uvHandle) > 0 ||
	  uv_fileno(reinterpret_cast<uv_handle_t*>(this->uvHandle), &fd) != 0)
	{
		return false;
	}

	std::array<struct iovec, MaxSegments> iov; // NOLINT(cppcoreguidelines-pro-type-member-init)
	size_t total{ 0 };
	auto index = first;

	for (size_t i{ 0 }; i < count; ++i)
	{
		const auto& datagram = held.datagrams[index];

		iov[i] = { held.store.get() + datagram.offset, datagram.len };
		total += datagram.len;
		index = datagram.next;
	}

	alignas(struct cmsghdr) std::array<uint8_t, CMSG_SPACE(sizeof(uint16_t))> control{};
	struct msghdr message{};

	message.msg_name = const_cast<struct sockaddr_storage*>(&peer.addr);
	message.msg_namelen =
	  peer.addr.ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
	message.msg_iov        = iov.data();
	message.msg_iovlen     = count;
	message.msg_control    = control.data();
	message.msg_controllen = control.size();

	auto* header = CMSG_FIRSTHDR(&message);

	header->cmsg_level = SOL_UDP;
	header->cmsg_type  = UDP_SEGMENT;
	header->cmsg_len   = CMSG_LEN(sizeof(uint16_t));

	const auto segmentSize = static_cast<uint16_t>(held.datagrams[first].len);

	std::memcpy(CMSG_DATA(header), &segmentSize, sizeof(segmentSize));

	ssize_t sent;

	do
	{
		sent = sendmsg(fd, &message, MSG_DONTWAIT);
	} while (sent == -1 && errno == EINTR);

	if (sent != static_cast<ssize_t>(total))
	{
		// The socket is full, or nothing can be sent to that peer at all: that does not speak against segments. Anything else
		// does, and may concern its route alone.
		if (errno == EIO || errno == EINVAL || errno == EMSGSIZE || errno == EOPNOTSUPP)
		{
			if (this->unsegmented.size() == MaxUnsegmented)
			{
				this->unsegmented.clear();
			}

			this->unsegmented.insert(peer.key);
		}

		return false;
	}

	this->socket.AddSentBytes(total);

	for (index = first; count > 0; --count)
	{
		const auto& datagram = held.datagrams[index];

		if (datagram.cb)
		{
			(*datagram.cb)(true);
			delete datagram.cb;
		}

		index = datagram.next;
	}

	return true;
}
