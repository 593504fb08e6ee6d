// One ring allreduce in ns-3: TCP over a star, packet by packet, without data; prints a line of JSON.
//
// Arguments: RANKS SIZE_BYTES RATE_BPS DELAY_NS MTU_BYTES. The hosts are joined to one router by point-to-point
// links. Each rank has one TCP connection to the next one; a part of the tensor may leave when the part of the
// step before has arrived in full. TCP's window is open from the start, as RDMA's is, and queues hold all of a
// receiver's window, so nothing is lost.

#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

using namespace ns3;

namespace
{

constexpr uint16_t PORT = 9;
constexpr uint32_t HEADERS_BYTES = 20 + 32; // IPv4, and TCP with the option of timestamps
constexpr uint32_t WINDOW_BYTES = 1 << 20;  // a receiver's
constexpr uint32_t FIRST_WINDOW = 64;       // segments; some round trips' at 100 Gbit/s

uint64_t g_part = 0; // bytes that a rank sends in a step
uint32_t g_ranks = 0;
uint32_t g_finished = 0;
int64_t g_done_ns = 0;

// One rank: sends 2(n-1) parts to the next rank, and receives as many from the one before.
class Rank
{
  public:
    // Called when the simulation has begun, as nodes must have been initialized.
    void Begin(uint32_t number, Ptr<Socket> out, InetSocketAddress next)
    {
        m_number = number;
        m_out = out;
        m_out->SetSendCallback(MakeCallback(&Rank::Flush, this));
        m_out->SetConnectCallback(MakeCallback(&Rank::Connected, this), MakeCallback(&Rank::Refused, this));
        m_unread = g_part;
        m_out->Connect(next);
    }

    void Accept(Ptr<Socket> in, const Address&)
    {
        in->SetRecvCallback(MakeCallback(&Rank::Read, this));
    }

  private:
    void Connected(Ptr<Socket>)
    {
        m_unsent += g_part;
        Flush(m_out, 0);
    }

    void Refused(Ptr<Socket>)
    {
        std::fprintf(stderr, "rank %u: no connection\n", m_number);
        std::exit(1);
    }

    void Flush(Ptr<Socket>, uint32_t)
    {
        while (m_unsent > 0 && m_out->GetTxAvailable() > 0)
        {
            const auto bytes = std::min<uint64_t>(m_unsent, m_out->GetTxAvailable());
            const int sent = m_out->Send(Create<Packet>(static_cast<uint32_t>(bytes)));
            if (sent <= 0)
            {
                return;
            }
            m_unsent -= sent;
        }
    }

    void Read(Ptr<Socket> in)
    {
        while (Ptr<Packet> packet = in->Recv())
        {
            uint64_t bytes = packet->GetSize();
            if (bytes == 0)
            {
                return;
            }
            while (bytes > 0 && m_step < Steps())
            {
                const auto taken = std::min(bytes, m_unread);
                bytes -= taken;
                m_unread -= taken;
                if (m_unread == 0)
                {
                    EndStep();
                }
            }
        }
    }

    void EndStep()
    {
        if (++m_step == Steps())
        {
            ++g_finished;
            g_done_ns = Simulator::Now().GetNanoSeconds();
            return;
        }
        m_unread = g_part;
        m_unsent += g_part;
        Flush(m_out, 0);
    }

    static uint32_t Steps()
    {
        return 2 * (g_ranks - 1);
    }

    uint32_t m_number = 0;
    uint32_t m_step = 0;
    uint64_t m_unread = 0;
    uint64_t m_unsent = 0;
    Ptr<Socket> m_out;
};

void
SetDefaults(uint32_t mtu)
{
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(mtu));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(FIRST_WINDOW));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(8 * WINDOW_BYTES));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(WINDOW_BYTES));
    Config::SetDefault("ns3::DropTailQueue<Packet>::MaxSize", StringValue("100000p"));
}

} // namespace

int
main(int argc, char* argv[])
{
    if (argc != 6)
    {
        std::fprintf(stderr, "usage: ns3_ring RANKS SIZE_BYTES RATE_BPS DELAY_NS MTU_BYTES\n");
        return 2;
    }
    g_ranks = std::strtoul(argv[1], nullptr, 10);
    g_part = std::strtoull(argv[2], nullptr, 10) / std::max<uint32_t>(g_ranks, 1);
    const uint64_t rate_bps = std::strtoull(argv[3], nullptr, 10);
    const uint64_t delay_ns = std::strtoull(argv[4], nullptr, 10);
    const uint32_t mtu = std::strtoul(argv[5], nullptr, 10);
    if (g_ranks < 2 || g_part < 1)
    {
        std::fprintf(stderr, "ns3_ring: 2 ranks or more, and a byte or more for each part\n");
        return 2;
    }
    SetDefaults(mtu);

    NodeContainer hosts;
    NodeContainer router;
    hosts.Create(g_ranks);
    router.Create(1);
    InternetStackHelper stack;
    stack.InstallAll();

    PointToPointHelper line;
    line.SetDeviceAttribute("DataRate", DataRateValue(DataRate(rate_bps)));
    line.SetDeviceAttribute("Mtu", UintegerValue(mtu + HEADERS_BYTES));
    line.SetChannelAttribute("Delay", TimeValue(NanoSeconds(delay_ns)));
    Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.252");
    std::vector<Ipv4Address> address(g_ranks);
    for (uint32_t i = 0; i < g_ranks; ++i)
    {
        const NetDeviceContainer ends = line.Install(hosts.Get(i), router.Get(0));
        address[i] = addresses.Assign(ends).GetAddress(0);
        addresses.NewNetwork();
    }
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();

    std::vector<Rank> ranks(g_ranks);
    std::vector<Ptr<Socket>> listeners;
    for (uint32_t i = 0; i < g_ranks; ++i)
    {
        Ptr<Socket> listener = Socket::CreateSocket(hosts.Get(i), TcpSocketFactory::GetTypeId());
        listener->Bind(InetSocketAddress(Ipv4Address::GetAny(), PORT));
        listener->Listen();
        listener->SetAcceptCallback(MakeNullCallback<bool, Ptr<Socket>, const Address&>(),
                                    MakeCallback(&Rank::Accept, &ranks[i]));
        listeners.push_back(listener);
    }
    for (uint32_t i = 0; i < g_ranks; ++i)
    {
        Ptr<Socket> out = Socket::CreateSocket(hosts.Get(i), TcpSocketFactory::GetTypeId());
        const InetSocketAddress next(address[(i + 1) % g_ranks], PORT);
        Simulator::Schedule(Seconds(0), &Rank::Begin, &ranks[i], i, out, next);
    }
    Simulator::Run();
    if (g_finished != g_ranks)
    {
        std::fprintf(stderr, "ns3_ring: all %u ranks must finish, got %u\n", g_ranks, g_finished);
        return 1;
    }
    std::printf("{\"time_us\": %.6f}\n", g_done_ns / 1e3);
    Simulator::Destroy();
    return 0;
}
