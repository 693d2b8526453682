package library

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// vendors are made-up devices, written from the MIBs, and what the built-in definitions say of them: kind, name, state, readings.
var vendors = []struct {
	name, objectID, vars, want string
}{
	{"an environmental monitor of APC in Fahrenheit, whose second probe was never discovered", "1.3.6.1.4.1.318.1.3.8.4", `
1.3.6.1.4.1.318.1.1.10.3.12.11.0 2
1.3.6.1.4.1.318.1.1.10.3.13.1.1.2.1 "front"
1.3.6.1.4.1.318.1.1.10.3.13.1.1.2.2 "Err"
1.3.6.1.4.1.318.1.1.10.3.13.1.1.3.1 68
1.3.6.1.4.1.318.1.1.10.3.13.1.1.3.2 80
1.3.6.1.4.1.318.1.1.10.3.13.1.1.6.1 30
1.3.6.1.4.1.318.1.1.10.3.13.1.1.6.2 29
1.3.6.1.4.1.318.1.1.10.3.13.1.1.10.1 2
1.3.6.1.4.1.318.1.1.10.3.13.1.1.10.2 1
1.3.6.1.4.1.318.1.1.10.3.13.1.1.12.1 95`, `
temperature front ok hw_temperature_celsius=20 hw_temperature_limit_celsius[high.critical]=35
humidity front  hw_humidity_ratio=0.3`},
	{"a UPS of APC: the objects with a decimal place count", "1.3.6.1.4.1.318.1.3.2", `
1.3.6.1.4.1.318.1.1.1.2.1.1.0 2
1.3.6.1.4.1.318.1.1.1.2.2.1.0 97
1.3.6.1.4.1.318.1.1.1.2.3.1.0 974
1.3.6.1.4.1.318.1.1.1.4.1.1.0 3
1.3.6.1.4.1.318.1.1.1.4.2.3.0 21
1.3.6.1.4.1.318.1.1.1.4.3.3.0 214`, `
battery Battery ok hw_battery_charge_ratio=0.974
power_supply Output degraded hw_power_supply_on_battery=1 hw_power_supply_utilization_ratio=0.214`},
	{"a UPS that sends tenths of volts in UPS-MIB", "1.3.6.1.4.1.2254.2.4", `
1.3.6.1.2.1.33.1.2.1.0 2
1.3.6.1.2.1.33.1.3.3.1.3.1 2363
1.3.6.1.2.1.33.1.4.4.1.2.1 230`, `
battery Battery ok
power_supply Input 1  hw_voltage_volts=236.3
power_supply Output 1  hw_voltage_volts=230`},
	{"a disk array with FCMGMT-MIB, whose readings stand in texts", "1.3.6.1.4.1.11.2.51", `
1.3.6.1.3.94.1.8.1.3.1.1 "Ctlr A"
1.3.6.1.3.94.1.8.1.4.1.1 3
1.3.6.1.3.94.1.8.1.6.1.1 "Ctlr A: 34 C 93.2F"
1.3.6.1.3.94.1.8.1.7.1.1 8
1.3.6.1.3.94.1.8.1.8.1.1 3
1.3.6.1.3.94.1.8.1.3.1.2 "PSU 1"
1.3.6.1.3.94.1.8.1.4.1.2 5
1.3.6.1.3.94.1.8.1.6.1.2 "PSU 1: failed"
1.3.6.1.3.94.1.8.1.7.1.2 5
1.3.6.1.3.94.1.8.1.8.1.2 2`, `
temperature Ctlr A ok hw_temperature_celsius=34
power_supply PSU 1 failed`},
	{"Rittal's CMC-III: the unit and the factor stand beside each variable", "1.3.6.1.4.1.2606.7", `
1.3.6.1.4.1.2606.7.4.2.2.1.3.1.2 "Temperature.Value"
1.3.6.1.4.1.2606.7.4.2.2.1.4.1.2 2
1.3.6.1.4.1.2606.7.4.2.2.1.5.1.2 "degree C"
1.3.6.1.4.1.2606.7.4.2.2.1.7.1.2 -100
1.3.6.1.4.1.2606.7.4.2.2.1.11.1.2 2350
1.3.6.1.4.1.2606.7.4.2.2.1.3.1.3 "CAN1.Current"
1.3.6.1.4.1.2606.7.4.2.2.1.4.1.3 2
1.3.6.1.4.1.2606.7.4.2.2.1.5.1.3 "mA"
1.3.6.1.4.1.2606.7.4.2.2.1.7.1.3 0
1.3.6.1.4.1.2606.7.4.2.2.1.11.1.3 140
1.3.6.1.4.1.2606.7.4.2.2.1.3.1.4 "Temperature.Status"
1.3.6.1.4.1.2606.7.4.2.2.1.4.1.4 7
1.3.6.1.4.1.2606.7.4.2.2.1.11.1.4 6`, `
temperature Temperature.Value  hw_temperature_celsius=23.5
current CAN1.Current  hw_current_amperes=0.14
module Temperature.Status degraded`},
	{"a Supermicro whose battery sensor is discrete, and one in volts", "1.3.6.1.4.1.21317", `
1.3.6.1.4.1.21317.1.3.1.2.1 "4.000"
1.3.6.1.4.1.21317.1.3.1.6.1 "0.000"
1.3.6.1.4.1.21317.1.3.1.9.1 "0.000"
1.3.6.1.4.1.21317.1.3.1.13.1 "VBAT"
1.3.6.1.4.1.21317.1.3.1.2.2 "3.100"
1.3.6.1.4.1.21317.1.3.1.6.2 "2.500"
1.3.6.1.4.1.21317.1.3.1.9.2 "3.600"
1.3.6.1.4.1.21317.1.3.1.13.2 "VBAT"`, `
voltage VBAT  hw_voltage_volts=3.1 hw_voltage_limit_volts[high.critical]=3.6 hw_voltage_limit_volts[low.critical]=2.5
battery VBAT ok`},
	{"a router without a redundant peer", "1.3.6.1.4.1.9.1.1", `
1.3.6.1.4.1.9.9.176.1.1.2.0 14
1.3.6.1.4.1.9.9.176.1.1.4.0 2`, `
module Redundancy unit ok`},
	{"a UPS of Tripp Lite on its battery", "1.3.6.1.4.1.850.1", `
1.3.6.1.4.1.850.1.1.3.1.3.1.1.1.1.1 3
1.3.6.1.4.1.850.1.1.3.1.3.1.1.1.3.1 7
1.3.6.1.4.1.850.1.1.3.1.3.1.1.1.4.1 40
1.3.6.1.4.1.850.1.1.3.1.3.1.2.1.1.1 240
1.3.6.1.4.1.850.1.1.3.1.3.3.1.1.1.1 5
1.3.6.1.4.1.850.1.1.3.1.3.3.1.1.3.1 600
1.3.6.1.4.1.850.1.1.3.1.3.5.1.1.4.1.1 1`, `
battery Battery 1 degraded hw_battery_time_left_seconds=420 hw_battery_charge_ratio=0.4 hw_voltage_volts=24
power_supply Output 1 degraded hw_power_supply_on_battery=1 hw_frequency_hertz=60
outlet Outlet 1.1 unknown`},
	{"a UPS with XPPC-MIB, without an environment sensor", "1.3.6.1.4.1.935.1.1.1", `
1.3.6.1.4.1.935.1.1.1.2.1.1.0 2
1.3.6.1.4.1.935.1.1.1.2.2.1.0 100
1.3.6.1.4.1.935.1.1.1.2.2.4.0 9999
1.3.6.1.4.1.935.1.1.1.3.2.1.0 2360
1.3.6.1.4.1.935.1.1.1.4.1.1.0 2
1.3.6.1.4.1.935.1.1.1.4.2.3.0 16
1.3.6.1.4.1.935.1.1.1.9.1.3.0 0`, `
battery Battery ok hw_battery_charge_ratio=1
power_supply Input  hw_voltage_volts=236
power_supply Output ok hw_power_supply_on_battery=0 hw_power_supply_utilization_ratio=0.16`},
	{"a small business switch of Cisco without a redundant supply", "1.3.6.1.4.1.9.6.1.1", `
1.3.6.1.4.1.9.6.1.101.53.15.1.2.1 1
1.3.6.1.4.1.9.6.1.101.53.15.1.3.1 5
1.3.6.1.4.1.9.6.1.101.53.15.1.4.1 3
1.3.6.1.4.1.9.6.1.101.53.15.1.10.1 47
1.3.6.1.4.1.9.6.1.101.53.15.1.18.1 4200`, `
power_supply Unit 1 main power supply ok
fan Unit 1 fan 1 failed hw_fan_speed_rpm=4200
temperature Unit 1 board  hw_temperature_celsius=47`},
	{"a BMC of Supermicro, whose sensors have no unit", "1.3.6.1.4.1.21317", `
1.3.6.1.4.1.21317.1.3.1.2.1 "32.000"
1.3.6.1.4.1.21317.1.3.1.9.1 "100.000"
1.3.6.1.4.1.21317.1.3.1.13.1 "CPU Temp"
1.3.6.1.4.1.21317.1.3.1.2.2 "1100.000"
1.3.6.1.4.1.21317.1.3.1.13.2 "FAN1"
1.3.6.1.4.1.21317.1.3.1.2.3 "12.063"
1.3.6.1.4.1.21317.1.3.1.13.3 "12V"
1.3.6.1.4.1.21317.1.3.1.2.4 "4.000"
1.3.6.1.4.1.21317.1.3.1.13.4 "Chassis Intru"`, `
temperature CPU Temp  hw_temperature_celsius=32 hw_temperature_limit_celsius[high.critical]=100
fan FAN1  hw_fan_speed_rpm=1100
voltage 12V  hw_voltage_volts=12.063`},
	{"Asentria's points: the second number of the index is the class; outputs have no health", "1.3.6.1.4.1.3052.20.3.2", `
1.3.6.1.4.1.3052.20.1.1.1.1.4.3.1.1 "Hall"
1.3.6.1.4.1.3052.20.1.1.1.1.5.3.1.1 4
1.3.6.1.4.1.3052.20.1.1.1.1.7.3.1.1 "86 F"
1.3.6.1.4.1.3052.20.1.1.1.1.4.3.3.1 "Hall"
1.3.6.1.4.1.3052.20.1.1.1.1.5.3.3.1 3
1.3.6.1.4.1.3052.20.1.1.1.1.6.3.3.1 28
1.3.6.1.4.1.3052.20.1.1.1.1.4.200.2.1 "Door"
1.3.6.1.4.1.3052.20.1.1.1.1.5.200.2.1 1
1.3.6.1.4.1.3052.20.1.1.1.1.6.200.2.1 1
1.3.6.1.4.1.3052.20.1.1.1.1.4.1.6.1 "Lamp"
1.3.6.1.4.1.3052.20.1.1.1.1.5.1.6.1 2
1.3.6.1.4.1.3052.20.1.1.1.1.4.2.5.1 "Rectifier"
1.3.6.1.4.1.3052.20.1.1.1.1.5.2.5.1 3
1.3.6.1.4.1.3052.20.1.1.1.1.7.2.5.1 "54.2 VDC"
1.3.6.1.4.1.3052.20.1.1.1.1.4.2.5.2 "Fuel"
1.3.6.1.4.1.3052.20.1.1.1.1.5.2.5.2 3
1.3.6.1.4.1.3052.20.1.1.1.1.7.2.5.2 "89.0 %"`, `
temperature Hall 3 degraded hw_temperature_celsius=30
module Door 200.1 degraded
humidity Hall 3 ok hw_humidity_ratio=0.28
voltage Rectifier 2.1  hw_voltage_volts=54.2`},
	{"an amplifier of Alpine, a fan card with one fan, a card with one rail", "1.3.6.1.4.1.52326", `
1.3.6.1.4.1.52326.2.1.2.1.2.1 1
1.3.6.1.4.1.52326.2.1.2.1.2.2 0
1.3.6.1.4.1.52326.2.1.1.1.8.1 "38.02"
1.3.6.1.4.1.52326.2.1.1.1.9.1 0
1.3.6.1.4.1.52326.2.1.1.1.10.1 "3.39"
1.3.6.1.4.1.52326.2.1.1.1.11.1 1
1.3.6.1.4.1.52326.2.1.1.1.13.1 1
1.3.6.1.4.1.52326.2.1.1.1.8.2 "0"
1.3.6.1.4.1.52326.1.1.1.1.6.1.1 "9.90"
1.3.6.1.4.1.52326.1.1.1.1.10.1.1 "-5.20"
1.3.6.1.4.1.52326.1.1.2.1.1.3.1.1 "-25.00"
1.3.6.1.4.1.52326.1.1.2.2.1.3.1.1 1
1.3.6.1.4.1.52326.1.1.2.2.1.6.1.1 1
1.3.6.1.4.1.52326.2.1.4.1.8.1 1
1.3.6.1.4.1.52326.2.1.4.1.9.1 "0.00"
1.3.6.1.4.1.52326.2.1.5.1.2.1 1
1.3.6.1.4.1.52326.2.1.5.1.9.1 14051
1.3.6.1.4.1.52326.2.1.5.1.10.1 0
1.3.6.1.4.1.52326.2.1.5.1.11.1 0
1.3.6.1.4.1.52326.2.1.5.1.12.1 1`, `
module Line card 1 ok hw_temperature_celsius=38.02
voltage Line card 1 power 1 ok hw_voltage_volts=3.39
network Amplifier 1.1 failed hw_optical_power_dbm[transmit]=9.9 hw_optical_power_dbm[receive]=-5.2 hw_optical_power_limit_dbm[receive][low.critical]=-25
power_supply Power supply 1 failed hw_voltage_volts=0
fan Fan card 1 fan 1 ok hw_fan_speed_rpm=14051`},
	{"a multiplexer of Fibernet: a channel whose remote transceiver is missing", "1.3.6.1.4.1.29003.2.44.1", `
1.3.6.1.4.1.29003.2.44.1.1.9.1.3.1 0
1.3.6.1.4.1.29003.2.44.1.1.9.1.5.1 "31.08"
1.3.6.1.4.1.29003.2.44.1.1.9.1.8.1 "1.13"
1.3.6.1.4.1.29003.2.44.1.1.9.1.10.1 0
1.3.6.1.4.1.29003.2.44.1.2.1.3.1.1 1
1.3.6.1.4.1.29003.2.44.1.2.1.5.1.1 0
1.3.6.1.4.1.29003.2.44.1.2.1.7.1.1 0
1.3.6.1.4.1.29003.2.44.1.2.1.8.1.1 1
1.3.6.1.4.1.29003.2.44.1.2.1.9.1.1 0
1.3.6.1.4.1.29003.2.44.1.2.1.3.1.2 0
1.3.6.1.4.1.29003.2.44.1.2.1.5.1.2 0
1.3.6.1.4.1.29003.2.44.1.2.1.8.1.2 1`, `
module Multiplexer 1 ok
temperature Multiplexer 1 interior  hw_temperature_celsius=31.08
voltage Multiplexer 1 1.2 V  hw_voltage_volts=1.13
network Channel 1.1 degraded`},
	{"a power analyser of Janitza", "1.3.6.1.4.1.34278.10.1", `
1.3.6.1.4.1.34278.1.1.0 2301
1.3.6.1.4.1.34278.1.8.0 216052
1.3.6.1.4.1.34278.1.12.0 45924
1.3.6.1.4.1.34278.1.16.0 -18353
1.3.6.1.4.1.34278.1.5.0 3977
1.3.6.1.4.1.34278.2.1.0 136678
1.3.6.1.4.1.34278.4.1.0 39301973
1.3.6.1.4.1.34278.8.1.0 5001`, `
power_meter Phase L1  hw_voltage_volts=230.1 hw_current_amperes=216.052 hw_power_watts=45924 hw_energy_joules_total=1.41487e+13
voltage Between phases L1-L2  hw_voltage_volts=397.7
power_meter Sum of L1 to L3  hw_power_watts=136678
frequency Mains frequency  hw_frequency_hertz=50.01`},
	{"a printer that is jammed and low on paper, and one that is well", "1.3.6.1.4.1.253.8.62.1", `
1.3.6.1.2.1.25.3.2.1.3.1 "Printer"
1.3.6.1.2.1.25.3.5.1.2.1 octets 8400
1.3.6.1.2.1.25.3.2.1.3.2 "Copier"
1.3.6.1.2.1.25.3.5.1.2.2 octets 00`, `
module Printer failed
module Copier ok`},
	{"a UPS of Socomec on its battery, whose fans have failed; 65535 is no reading", "1.3.6.1.4.1.4555.1.1.7", `
1.3.6.1.4.1.4555.1.1.7.1.2.1.0 5
1.3.6.1.4.1.4555.1.1.7.1.2.3.0 65535
1.3.6.1.4.1.4555.1.1.7.1.2.4.0 88
1.3.6.1.4.1.4555.1.1.7.1.2.5.0 542
1.3.6.1.4.1.4555.1.1.7.1.2.7.0 210
1.3.6.1.4.1.4555.1.1.7.1.3.3.1.2.1 0
1.3.6.1.4.1.4555.1.1.7.1.4.1.0 3
1.3.6.1.4.1.4555.1.1.7.1.4.4.1.2.1 2300
1.3.6.1.4.1.4555.1.1.7.1.4.4.1.4.1 31
1.3.6.1.4.1.4555.1.1.7.1.4.4.1.6.1 65535
1.3.6.1.4.1.4555.1.1.7.1.6.3.14.0 0
1.3.6.1.4.1.4555.1.1.7.1.6.3.32.0 1`, `
battery Battery degraded hw_battery_charge_ratio=0.88 hw_voltage_volts=54.2
temperature Ambient  hw_temperature_celsius=21
power_supply Input 1  hw_voltage_volts=0
power_supply Output degraded hw_power_supply_on_battery=1
power_supply Output 1  hw_voltage_volts=230 hw_power_supply_utilization_ratio=0.31
fan Fans failed`},
	{"a rack PDU behind Vertiv's DCS with two outlets, of which one is off, and without a third branch", "1.3.6.1.4.1.13400.2", `
1.3.6.1.4.1.13400.3.2.225.1.1.3.1 230
1.3.6.1.4.1.13400.3.2.225.1.1.42.1 1
1.3.6.1.4.1.13400.3.2.225.1.1.50.1 9999
1.3.6.1.4.1.13400.3.2.225.1.1.51.1 0
1.3.6.1.4.1.13400.3.2.225.1.1.52.1 1
1.3.6.1.4.1.13400.3.2.225.1.1.53.1 0
1.3.6.1.4.1.13400.3.2.225.1.1.54.1 0
1.3.6.1.4.1.13400.3.2.225.1.1.77.1 240
1.3.6.1.4.1.13400.3.2.225.1.1.110.1 2`, `
power_supply PDU 1 degraded hw_voltage_volts=230 hw_voltage_limit_volts[high.degraded]=240
power_supply PDU 1 outlet 1 ok
power_supply PDU 1 outlet 2 unknown`},
	{"a PDU of Raritan whose breaker has tripped, and an outlet that is switched off", "1.3.6.1.4.1.13742.6", `
1.3.6.1.4.1.13742.6.3.4.4.1.6.1.1.1 2
1.3.6.1.4.1.13742.6.3.4.4.1.7.1.1.1 3
1.3.6.1.4.1.13742.6.5.3.3.1.2.1.1.1 1
1.3.6.1.4.1.13742.6.5.3.3.1.3.1.1.1 4
1.3.6.1.4.1.13742.6.5.3.3.1.4.1.1.1 680
1.3.6.1.4.1.13742.6.5.3.3.1.2.1.1.15 1
1.3.6.1.4.1.13742.6.5.3.3.1.3.1.1.15 0
1.3.6.1.4.1.13742.6.5.4.3.1.2.1.7.14 1
1.3.6.1.4.1.13742.6.5.4.3.1.3.1.7.14 8`, `
current Breaker 1 sensor 1 ok hw_current_amperes=0.68
power_supply Breaker 1 sensor 15 failed
power_supply Outlet 7 sensor 14 unknown`},
	{"a rack server of Cisco: an empty bay for a supply, a disk that will fail", "1.3.6.1.4.1.9.1.1512", `
1.3.6.1.4.1.9.9.719.1.15.56.1.2.1 "sys/rack-unit-1/psu-1"
1.3.6.1.4.1.9.9.719.1.15.56.1.7.1 1
1.3.6.1.4.1.9.9.719.1.15.56.1.10.1 1
1.3.6.1.4.1.9.9.719.1.15.56.1.11.1 10
1.3.6.1.4.1.9.9.719.1.15.56.1.2.2 "sys/rack-unit-1/psu-2"
1.3.6.1.4.1.9.9.719.1.15.56.1.7.2 6
1.3.6.1.4.1.9.9.719.1.15.56.1.10.2 3
1.3.6.1.4.1.9.9.719.1.15.56.1.11.2 11
1.3.6.1.4.1.9.9.719.1.45.4.1.2.1 "sys/rack-unit-1/board/storage-SAS-1/disk-1"
1.3.6.1.4.1.9.9.719.1.45.4.1.9.1 1
1.3.6.1.4.1.9.9.719.1.45.4.1.10.1 10
1.3.6.1.4.1.9.9.719.1.45.4.1.18.1 11
1.3.6.1.4.1.9.9.719.1.9.44.1.2.1 "sys/rack-unit-1/board/temp-stats"
1.3.6.1.4.1.9.9.719.1.9.44.1.4.1 24
1.3.6.1.4.1.9.9.719.1.9.44.1.13.1 0`, `
power_supply sys/rack-unit-1/psu-1 ok
physical_disk sys/rack-unit-1/board/storage-SAS-1/disk-1 ok+predicted_failure
temperature sys/rack-unit-1/board/temp-stats ambient  hw_temperature_celsius=24`},
	{"a Waveserver of Ciena: an empty bay, a fan's speed, powers with a decimal place", "1.3.6.1.4.1.1271.3", `
1.3.6.1.4.1.1271.3.4.6.20.1.2.1 "PSU-1"
1.3.6.1.4.1.1271.3.4.6.21.1.3.1.1 2
1.3.6.1.4.1.1271.3.4.6.20.1.2.2 "PSU-2"
1.3.6.1.4.1.1271.3.4.6.21.1.3.2.1 0
1.3.6.1.4.1.1271.3.4.6.24.1.2.1 "CFU-1"
1.3.6.1.4.1.1271.3.4.6.27.1.2.1.2 8100
1.3.6.1.4.1.1271.3.4.15.4.1.2.3.1 "1-3"
1.3.6.1.4.1.1271.3.4.15.5.1.2.3.1 1
1.3.6.1.4.1.1271.3.4.15.5.1.3.3.1 2
1.3.6.1.4.1.1271.3.4.15.17.1.2.3.1.1 -51`, `
power_supply PSU-1 failed
fan CFU-1 fan 2  hw_fan_speed_rpm=8100
network Transceiver 1-3 degraded
network Transceiver 3 channel 1  hw_optical_power_dbm[receive]=-5.1`},
	{"a transfer switch of APC that has lost source B, and its sensor in tenths of Fahrenheit", "1.3.6.1.4.1.318.1.3.32", `
1.3.6.1.4.1.318.1.1.33.3.1.4.1 4
1.3.6.1.4.1.318.1.1.33.3.1.9.1 1
1.3.6.1.4.1.318.1.1.33.3.1.10.1 2
1.3.6.1.4.1.318.1.1.33.3.1.11.1 1
1.3.6.1.4.1.318.1.1.33.3.1.19.1 231
1.3.6.1.4.1.318.1.1.33.3.1.20.1 0
1.3.6.1.4.1.318.1.1.33.4.1.3.1 4
1.3.6.1.4.1.318.1.1.33.4.1.5.1 680
1.3.6.1.4.1.318.1.1.33.4.1.10.1 -1
1.3.6.1.4.1.318.1.1.33.4.1.3.2 1
1.3.6.1.4.1.318.1.1.33.4.1.5.2 0
1.3.6.1.4.1.318.1.1.22.4.3.1.0 123`, `
power_meter Distribution system  hw_power_watts=12300
power_supply Transfer switch 1 failed
power_supply Transfer switch 1 source A ok
power_supply Transfer switch 1 source B failed
voltage Transfer switch 1 source A  hw_voltage_volts=231
voltage Transfer switch 1 source B  hw_voltage_volts=0
temperature Sensor 1  hw_temperature_celsius=20`},
	{"a switch with Linux, whose sensors are in two MIBs", "1.3.6.1.4.1.40310", `
1.3.6.1.2.1.47.1.1.1.1.7.1 "Temp1"
1.3.6.1.2.1.99.1.1.1.1.1 8
1.3.6.1.2.1.99.1.1.1.2.1 9
1.3.6.1.2.1.99.1.1.1.3.1 0
1.3.6.1.2.1.99.1.1.1.4.1 25
1.3.6.1.2.1.99.1.1.1.5.1 1
1.3.6.1.4.1.2021.13.16.2.1.2.1 "temp1"
1.3.6.1.4.1.2021.13.16.2.1.3.1 25000`, `
temperature Temp1 ok hw_temperature_celsius=25`},
	{"a node of Isilon with an empty bay and a dead disk", "1.3.6.1.4.1.12124.1.1", `
1.3.6.1.4.1.12124.2.1.2.0 1
1.3.6.1.4.1.12124.2.52.1.5.1 "HEALTHY"
1.3.6.1.4.1.12124.2.52.1.9.1 4000787030016
1.3.6.1.4.1.12124.2.52.1.5.2 "DEAD"
1.3.6.1.4.1.12124.2.52.1.5.3 "EMPTY"
1.3.6.1.4.1.12124.2.53.1.3.1 "Fan 1"
1.3.6.1.4.1.12124.2.53.1.4.1 6300
1.3.6.1.4.1.12124.2.54.1.3.1 "Front"
1.3.6.1.4.1.12124.2.54.1.4.1 "21.000"
1.3.6.1.4.1.12124.2.55.1.3.1 "Volts In"
1.3.6.1.4.1.12124.2.55.1.4.1 "231.0"
1.3.6.1.4.1.12124.2.55.1.3.2 "Amps Out"
1.3.6.1.4.1.12124.2.55.1.4.2 "12.5"`, `
enclosure Node degraded
physical_disk Bay 1 ok hw_physical_disk_size_bytes=4.00079e+12
physical_disk Bay 2 failed
fan Fan 1  hw_fan_speed_rpm=6300
temperature Front  hw_temperature_celsius=21
current Amps Out  hw_current_amperes=12.5
voltage Volts In  hw_voltage_volts=231`},
	{"a Data Domain with a supply without mains, and an absent sensor", "1.3.6.1.4.1.19746.3", `
1.3.6.1.4.1.19746.1.1.1.1.1.1.3.1.1 "PSU A"
1.3.6.1.4.1.19746.1.1.1.1.1.1.4.1.1 4
1.3.6.1.4.1.19746.1.1.2.1.1.1.4.1.1 "CPU"
1.3.6.1.4.1.19746.1.1.2.1.1.1.5.1.1 45
1.3.6.1.4.1.19746.1.1.2.1.1.1.6.1.1 3
1.3.6.1.4.1.19746.1.1.2.1.1.1.5.1.2 0
1.3.6.1.4.1.19746.1.1.2.1.1.1.6.1.2 2
1.3.6.1.4.1.19746.1.6.1.1.1.8.1.4 5`, `
power_supply Enclosure 1 PSU A failed
temperature Enclosure 1 CPU degraded hw_temperature_celsius=45
physical_disk Disk 1.4 ok`},
	{"a NetScaler", "1.3.6.1.4.1.5951.1", `
1.3.6.1.4.1.5951.4.1.1.41.7.1.1.1 "CPUFan0Speed"
1.3.6.1.4.1.5951.4.1.1.41.7.1.2.1 9000
1.3.6.1.4.1.5951.4.1.1.41.7.1.1.2 "InternalTemperature"
1.3.6.1.4.1.5951.4.1.1.41.7.1.2.2 31
1.3.6.1.4.1.5951.4.1.1.41.7.1.1.3 "CPU0CoreVoltage"
1.3.6.1.4.1.5951.4.1.1.41.7.1.2.3 1056
1.3.6.1.4.1.5951.4.1.1.41.7.1.1.4 "AuxiliaryTemperature0"
1.3.6.1.4.1.5951.4.1.1.41.7.1.2.4 0`, `
temperature InternalTemperature  hw_temperature_celsius=31
fan CPUFan0Speed  hw_fan_speed_rpm=9000
voltage CPU0CoreVoltage  hw_voltage_volts=1.056`},
	{"a load balancer of A10 with one supply, a failed fan and one that is not ready", "1.3.6.1.4.1.22610.1.3.14", `
1.3.6.1.4.1.22610.2.4.1.5.1.0 38
1.3.6.1.4.1.22610.2.4.1.5.5.0 4
1.3.6.1.4.1.22610.2.4.1.5.9.1.2.1 "Fan1A"
1.3.6.1.4.1.22610.2.4.1.5.9.1.3.1 0
1.3.6.1.4.1.22610.2.4.1.5.9.1.4.1 0
1.3.6.1.4.1.22610.2.4.1.5.9.1.2.2 "Fan1B"
1.3.6.1.4.1.22610.2.4.1.5.9.1.3.2 -2
1.3.6.1.4.1.22610.2.4.1.5.12.1.2.1 "Left"
1.3.6.1.4.1.22610.2.4.1.5.12.1.3.1 1
1.3.6.1.4.1.22610.2.4.1.5.12.1.2.2 "Right"
1.3.6.1.4.1.22610.2.4.1.5.12.1.3.2 2`, `
temperature System ok hw_temperature_celsius=38
fan Fan1A failed
fan Fan1B unknown
power_supply Left ok`},
	{"an IMM: fans in percent, a supply that is critical", "1.3.6.1.4.1.2.3.51.3", `
1.3.6.1.4.1.2.3.51.3.1.1.2.1.2.1 "Ambient Temp"
1.3.6.1.4.1.2.3.51.3.1.1.2.1.3.1 24
1.3.6.1.4.1.2.3.51.3.1.1.2.1.6.1 43
1.3.6.1.4.1.2.3.51.3.1.1.2.1.11.1 "Normal"
1.3.6.1.4.1.2.3.51.3.1.2.2.1.2.1 "Planar 12V"
1.3.6.1.4.1.2.3.51.3.1.2.2.1.3.1 12150
1.3.6.1.4.1.2.3.51.3.1.2.2.1.11.1 "Normal"
1.3.6.1.4.1.2.3.51.3.1.3.2.1.2.1 "Fan 1A Tach"
1.3.6.1.4.1.2.3.51.3.1.3.2.1.3.1 "27% of maximum"
1.3.6.1.4.1.2.3.51.3.1.3.2.1.10.1 "Normal"
1.3.6.1.4.1.2.3.51.3.1.4.1.0 4
1.3.6.1.4.1.2.3.51.3.1.11.2.1.2.1 "Power 1"
1.3.6.1.4.1.2.3.51.3.1.11.2.1.6.1 "Critical"`, `
temperature Ambient Temp ok hw_temperature_celsius=24 hw_temperature_limit_celsius[high.critical]=43
voltage Planar 12V ok hw_voltage_volts=12.15
fan Fan 1A Tach ok hw_fan_speed_ratio=0.27
enclosure System degraded
power_supply Power 1 failed`},
	{"a PDU of Enlogic with sensors in Fahrenheit and percent", "1.3.6.1.4.1.38446.1.1", `
1.3.6.1.4.1.38446.1.2.4.1.3.1 5
1.3.6.1.4.1.38446.1.2.4.1.4.1 812
1.3.6.1.4.1.38446.1.3.4.1.3.1.1 2
1.3.6.1.4.1.38446.1.3.4.1.5.1.1 352
1.3.6.1.4.1.38446.1.3.4.1.6.1.1 231
1.3.6.1.4.1.38446.1.6.2.1.6.1 1
1.3.6.1.4.1.38446.1.6.2.1.7.1 2
1.3.6.1.4.1.38446.1.6.4.1.2.1 "Rear"
1.3.6.1.4.1.38446.1.6.4.1.4.1 2
1.3.6.1.4.1.38446.1.6.4.1.5.1 2
1.3.6.1.4.1.38446.1.6.4.1.6.1 86
1.3.6.1.4.1.38446.1.6.4.1.8.1 860
1.3.6.1.4.1.38446.1.6.2.1.6.2 2
1.3.6.1.4.1.38446.1.6.2.1.7.2 3
1.3.6.1.4.1.38446.1.6.4.1.2.2 "Rear"
1.3.6.1.4.1.38446.1.6.4.1.4.2 2
1.3.6.1.4.1.38446.1.6.4.1.5.2 5
1.3.6.1.4.1.38446.1.6.4.1.6.2 61
1.3.6.1.4.1.38446.1.6.4.1.4.3 1
1.3.6.1.4.1.38446.1.6.4.1.5.3 0`, `
power_meter PDU 1 ok hw_power_watts=812
power_meter Phase 1.1 degraded hw_current_amperes=3.52 hw_voltage_volts=231
temperature Rear 1 ok hw_temperature_celsius=30
humidity Rear 2 degraded hw_humidity_ratio=0.61`},
	{"a NetScreen with one of two supplies", "1.3.6.1.4.1.3224.1.16", `
1.3.6.1.4.1.3224.21.1.1.2.0 1
1.3.6.1.4.1.3224.21.1.1.3.0 "Power 1"
1.3.6.1.4.1.3224.21.1.1.2.1 2
1.3.6.1.4.1.3224.21.2.1.2.0 0
1.3.6.1.4.1.3224.21.3.0 2
1.3.6.1.4.1.3224.21.4.1.3.0 33
1.3.6.1.4.1.3224.21.4.1.4.0 "Board"`, `
power_supply Power 1 ok
fan Fan 0 failed
battery Battery failed
temperature Board  hw_temperature_celsius=33`},
	{"a wireless controller of Aruba", "1.3.6.1.4.1.14823.1.1.32", `
1.3.6.1.4.1.14823.2.2.1.2.1.10.0 "Main Board 34.00 degrees Celsius / CPU Board 39 degrees"
1.3.6.1.4.1.14823.2.2.1.2.1.17.1.2.1 2
1.3.6.1.4.1.14823.2.2.1.2.1.18.1.2.1 1`, `
temperature Internal  hw_temperature_celsius=34
fan Fan 1 failed
power_supply Power supply 1 ok`},
	{"a PDU of HPE whose outlet is overloaded, and one that is off; a negative number is none", "1.3.6.1.4.1.232.165.7", `
1.3.6.1.4.1.232.165.7.2.1.1.2.0 500
1.3.6.1.4.1.232.165.7.2.1.1.3.0 1
1.3.6.1.4.1.232.165.7.2.1.1.5.0 97
1.3.6.1.4.1.232.165.7.5.1.1.5.0.6 8000
1.3.6.1.4.1.232.165.7.5.1.1.6.0.6 5
1.3.6.1.4.1.232.165.7.5.1.1.14.0.6 -1
1.3.6.1.4.1.232.165.7.5.2.1.1.0.6 2
1.3.6.1.4.1.232.165.7.5.2.1.1.0.7 1`, `
power_meter Input 0  hw_power_watts=97
frequency Input 0 frequency ok hw_frequency_hertz=50
power_supply Outlet 6 failed hw_current_amperes=8
power_supply Outlet 7 unknown`},
	{"a gateway of Packet Power: the unit of each channel stands beside it; battery and signal are no humidity", "1.3.6.1.4.1.33688.4", `
1.3.6.1.4.1.33688.4.1.1.7.46864.0.0.38674.100 "B710"
1.3.6.1.4.1.33688.4.1.1.8.46864.0.0.38674.100 "Temperature0"
1.3.6.1.4.1.33688.4.1.1.12.46864.0.0.38674.100 146
1.3.6.1.4.1.33688.4.1.1.13.46864.0.0.38674.100 "ddegC"
1.3.6.1.4.1.33688.4.1.1.7.46864.0.0.38674.191 "B710"
1.3.6.1.4.1.33688.4.1.1.8.46864.0.0.38674.191 "Humidity"
1.3.6.1.4.1.33688.4.1.1.12.46864.0.0.38674.191 54
1.3.6.1.4.1.33688.4.1.1.13.46864.0.0.38674.191 "%"
1.3.6.1.4.1.33688.4.1.1.8.46864.0.0.38674.192 "Battery"
1.3.6.1.4.1.33688.4.1.1.12.46864.0.0.38674.192 97
1.3.6.1.4.1.33688.4.1.1.13.46864.0.0.38674.192 "%"`, `
temperature B710 Temperature0  hw_temperature_celsius=14.6
humidity B710 Humidity  hw_humidity_ratio=0.54`},
	{"a stack of Huawei's switches with a cable that is down", "1.3.6.1.4.1.2011.2.23.339", `
1.3.6.1.4.1.2011.5.25.183.1.21.1.3.1.0 "1/1"
1.3.6.1.4.1.2011.5.25.183.1.21.1.5.1.0 1
1.3.6.1.4.1.2011.5.25.183.1.21.1.3.1.1 "1/2"
1.3.6.1.4.1.2011.5.25.183.1.21.1.5.1.1 2`, `
network Stack port 1/1 ok
network Stack port 1/2 degraded`},
	{"a power plant of Eltek whose currents are in tenths; a rectifier has failed, another bay is empty", "1.3.6.1.4.1.12148.10", `
1.3.6.1.4.1.12148.10.2.1.0 2
1.3.6.1.4.1.12148.10.2.15.0 1
1.3.6.1.4.1.12148.10.2.16.0 0
1.3.6.1.4.1.12148.10.3.4.1.2.1 1
1.3.6.1.4.1.12148.10.3.4.1.6.1 231
1.3.6.1.4.1.12148.10.3.4.1.2.2 4
1.3.6.1.4.1.12148.10.3.4.1.6.2 0
1.3.6.1.4.1.12148.10.5.6.1.2.1 3
1.3.6.1.4.1.12148.10.5.6.1.3.1 125
1.3.6.1.4.1.12148.10.5.6.1.4.1 230
1.3.6.1.4.1.12148.10.5.6.1.2.2 6
1.3.6.1.4.1.12148.10.10.1.0 1
1.3.6.1.4.1.12148.10.10.5.1.0 1
1.3.6.1.4.1.12148.10.10.5.5.0 5412
1.3.6.1.4.1.12148.10.10.6.1.0 1
1.3.6.1.4.1.12148.10.10.6.5.0 -12
1.3.6.1.4.1.12148.10.10.13.1.0 5
1.3.6.1.4.1.12148.10.13.13.1.0 11
1.3.6.1.4.1.12148.10.13.13.5.0 44
1.3.6.1.4.1.12148.10.13.13.6.0 50`, `
enclosure Power system degraded
power_supply Mains 1 ok hw_voltage_volts=231
power_supply Rectifier 1 failed hw_current_amperes[output]=12.5 hw_voltage_volts[input]=230
battery Battery degraded hw_voltage_volts=54.12 hw_current_amperes=-1.2
temperature Ambient degraded hw_temperature_celsius=44 hw_temperature_limit_celsius[high.critical]=50`},
	{"a transceiver of Ericsson: the second number of the index is what is measured, in thousandths", "1.3.6.1.4.1.193.218.1", `
1.3.6.1.2.1.31.1.1.1.1.7 "port 1/7"
1.3.6.1.4.1.193.218.2.50.1.2.1.3.7.1 -2310
1.3.6.1.4.1.193.218.2.50.1.2.1.4.7.1 1000
1.3.6.1.4.1.193.218.2.50.1.2.1.3.7.2 -5120
1.3.6.1.4.1.193.218.2.50.1.2.1.3.7.3 41500
1.3.6.1.4.1.193.218.2.50.1.2.1.3.7.4 325
1.3.6.1.4.1.193.218.2.50.1.2.1.3.7.6 3310`, `
network port 1/7 transmit  hw_optical_power_dbm[transmit]=-2.31 hw_optical_power_limit_dbm[transmit][high.critical]=1
network port 1/7 receive  hw_optical_power_dbm[receive]=-5.12
temperature port 1/7 transceiver  hw_temperature_celsius=41.5
voltage port 1/7 transceiver  hw_voltage_volts=3.31`},
	{"a SmartEdge of Redback", "1.3.6.1.4.1.2352.1.10", `
1.3.6.1.4.1.2352.2.4.1.1.1.2.1 "Fan tray"
1.3.6.1.4.1.2352.2.4.1.1.1.4.1 1
1.3.6.1.4.1.2352.2.4.1.2.1.2.1 "Feed A"
1.3.6.1.4.1.2352.2.4.1.2.1.4.1 2
1.3.6.1.4.1.2352.2.4.1.3.1.2.4.1 "1.2V"
1.3.6.1.4.1.2352.2.4.1.3.1.3.4.1 1200
1.3.6.1.4.1.2352.2.4.1.3.1.4.4.1 1190`, `
fan Fan tray ok
power_supply Feed A failed
voltage 1.2V  hw_voltage_volts=1.19`},
}

// TestVendors evaluates the made-up devices.
func TestVendors(t *testing.T) {
	known, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range vendors {
		vars := tree(t, strings.TrimSpace(v.vars))
		id := Identity{ObjectID: v.objectID, Present: map[string]string{}}
		for _, q := range known.Questions(id) {
			if x := vars.below(q); len(x) > 0 {
				id.Present[q.String()] = x[0].text()
			}
		}
		var got strings.Builder
		for _, r := range known.Recognise(id).Evaluate(vars).Reports {
			fmt.Fprintf(&got, "\n%s %s %s", r.Kind, r.Name, r.Status)
			for _, x := range r.Readings {
				limit := ""
				for i := 0; i < len(x.Attributes); i += 2 {
					limit += "[" + x.Attributes[i+1] + "]"
				}
				fmt.Fprintf(&got, " %s%s=%.6g", x.Metric.Family().Name, limit, x.Value)
			}
		}
		if diff := cmp.Diff(v.want, got.String()); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", v.name, diff)
		}
	}
}
